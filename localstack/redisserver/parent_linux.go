package redisserver

import "syscall"

// dieWithParent makes the kernel end the child when its parent dies, however that happens.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
