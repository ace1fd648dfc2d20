//go:build !linux

// Package child ties child processes to this one.
package child

import "syscall"

// Attr puts a child into a process group of its own, so that Ctrl-C reaches only the parent. This
// system cannot do more.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
