//go:build unix && !linux

package group

import "syscall"

// attributes returns the attributes of the command. Unlike on Linux, the command is not killed with
// this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: the first process of the system reaps orphans.
func adopt() {}
