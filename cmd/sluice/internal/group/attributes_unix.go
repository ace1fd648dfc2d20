//go:build unix && !linux

package group

import "syscall"

// attributes cannot tie the command to this process's life here, as they do on Linux.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt leaves orphans to the system's first process, which reaps them.
func adopt() {}
