// Package subprocess ties child processes to this one.
package subprocess

import "syscall"

// Attr puts a child into a process group of its own, so that Ctrl-C reaches only the parent, and
// makes the kernel end the child when its parent dies, however that happens.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
