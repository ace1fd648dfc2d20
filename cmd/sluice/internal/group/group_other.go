//go:build !unix

package group

import (
	"errors"
	"os"
	"syscall"
)

// Signal kills the command if s is SIGKILL, SIGTERM or os.Interrupt, because this system has no
// signals and no process groups. For any other signal it returns an error. It does not reach the
// processes that the command has started.
func (g *Group) Signal(s os.Signal) error {
	if s == syscall.SIGKILL || s == syscall.SIGTERM || s == os.Interrupt {
		return g.cmd.Process.Kill()
	}
	return errors.ErrUnsupported
}

func (g *Group) wake() {}

// Forwarded returns the signals to pass on to a group.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// Stopping returns no signals on this system.
func Stopping() []os.Signal { return nil }

func (g *Group) alive() bool {
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func inForeground(*os.File) bool { return false }

func adopt() {}

func takeForeground(*syscall.SysProcAttr, *os.File) {}

func regainForeground(*os.File) {}
