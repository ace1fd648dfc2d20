//go:build unix

package group

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to every process of the group. It returns an error if the group has no
// process.
func (g *Group) Signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return syscall.EINVAL
	}
	return syscall.Kill(-g.pgid, number)
}

// wake continues stopped processes.
func (g *Group) wake() { _ = g.Signal(syscall.SIGCONT) }

// Forwarded returns the signals to pass on to a group.
func Forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}
}

// Stopping returns the signals that would stop this process until it is continued.
func Stopping() []os.Signal { return []os.Signal{syscall.SIGTSTP} }

// alive reports whether the group has a process. It reaps orphans that this process has adopted,
// which would otherwise belong to the group forever.
func (g *Group) alive() bool {
	select {
	case <-g.exited: // cmd.Wait has reaped the command
		for {
			if pid, err := syscall.Wait4(-g.pgid, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	default:
		return true
	}
	return syscall.Kill(-g.pgid, 0) == nil
}

// inForeground reports whether f is a terminal whose foreground process group is the group of this
// process.
func inForeground(f *os.File) bool {
	foreground, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

func takeForeground(a *syscall.SysProcAttr, terminal *os.File) {
	a.Foreground, a.Ctty = true, int(terminal.Fd())
}

// regainForeground makes the group of this process the foreground of the terminal. The kernel sends
// SIGTTOU to a background process that makes this call. If the process does not ignore the signal,
// it stops.
func regainForeground(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}
