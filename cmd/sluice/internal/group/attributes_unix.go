//go:build unix && !linux

package group

import "syscall"

// attributes returns the attributes of the command. Unlike on Linux, the kernel does not kill the
// command when this process is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: PID 1 reaps orphans.
func adopt() {}
