//go:build !unix

package group

import (
	"errors"
	"os"
	"syscall"
)

// Signal kills the command on a system without process groups, whatever the signal: what the
// command has started is out of reach there.
func (g *Group) Signal(s os.Signal) error {
	if s == syscall.SIGKILL || s == syscall.SIGTERM || s == os.Interrupt {
		return g.cmd.Process.Kill()
	}
	return errors.ErrUnsupported
}

func (g *Group) wake() {}

// Forwarded are the signals to pass on to a group.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// Unstoppable is empty here.
func Unstoppable() []os.Signal { return nil }

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
