//go:build !linux

// Package subprocess configures child processes. On Linux, they end with their parent.
package subprocess

import "syscall"

// Attr puts a child into a separate process group, so that Ctrl-C reaches only the parent. Unlike
// on Linux, the kernel does not kill the child when the parent ends.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
