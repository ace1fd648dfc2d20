//go:build unix

package group

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to every process of the group. It is an error when there is none.
func (g *Group) Signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return syscall.EINVAL
	}
	return syscall.Kill(-g.pgid, number)
}

// wake lets stopped processes go on.
func (g *Group) wake() { _ = g.Signal(syscall.SIGCONT) }

// Forwarded are the signals to pass on to a group.
func Forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}
}

// Unstoppable are the signals that would stop this process, and with it whatever it has to do in
// time.
func Unstoppable() []os.Signal { return []os.Signal{syscall.SIGTSTP} }

// alive tells whether the group has a process. Orphans that became this process's children are
// reaped, or they would count for ever.
func (g *Group) alive() bool {
	select {
	case <-g.exited: // the command itself is reaped by its Wait
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

// inForeground tells whether f is a terminal in whose foreground this process's group is.
func inForeground(f *os.File) bool {
	foreground, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

func takeForeground(a *syscall.SysProcAttr, terminal *os.File) {
	a.Foreground, a.Ctty = true, int(terminal.Fd())
}

// regainForeground puts this process's group back. A background process that does so is stopped by
// SIGTTOU unless it ignores that.
func regainForeground(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}
