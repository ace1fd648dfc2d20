//go:build !linux

package redisserver

import "syscall"

// dieWithParent only takes the child out of the terminal's process group: this system cannot tie it to its parent.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
