//go:build !linux

// Package subprocess ties child processes to this one.
package subprocess

import "syscall"

// Attr puts a child into a process group of its own, so that Ctrl-C reaches only the parent. This
// system cannot do more.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
