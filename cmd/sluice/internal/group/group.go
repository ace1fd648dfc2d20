// Package group runs a command in a process group of its own, and ends the whole group: a shell's
// children and theirs, too.
//
// What leaves the group on purpose, as a daemon does with setsid, is out of reach.
package group

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Group is a running command and whatever it has started.
type Group struct {
	cmd     *exec.Cmd
	pgid    int
	exited  chan struct{}
	restore func() // gives the terminal back
}

// Start starts cmd. Its standard streams must be files or nil, so that what outlives the command
// holds nobody up.
//
// Where standard input is the terminal in whose foreground this process runs, the group takes the
// foreground: keys such as Ctrl-C reach it, and it may read. On Linux the command is killed should
// this process be.
func Start(cmd *exec.Cmd) (*Group, error) {
	g := &Group{cmd: cmd, exited: make(chan struct{}), restore: func() {}}
	attributes := attributes()
	if stdin, ok := cmd.Stdin.(*os.File); ok && inForeground(stdin) {
		takeForeground(attributes, stdin)
		g.restore = func() { regainForeground(stdin) }
	}
	cmd.SysProcAttr = attributes
	adopt()
	started := make(chan error, 1)
	go func() {
		// The kernel kills the command when the thread that started it ends: it must not, before
		// the command does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state tells how it ended
		}
		close(g.exited)
	}()
	if err := <-started; err != nil {
		<-g.exited
		g.restore()
		return nil, err
	}
	g.pgid = cmd.Process.Pid
	return g, nil
}

// Exited is closed when the command itself has ended; others of its group may go on.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// ExitCode is the command's after Exited: 128 + n when the signal n ended it, as shells have it.
func (g *Group) ExitCode() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// End ends the group: SIGTERM, and SIGKILL to what is left after grace. It returns when nothing is
// left, and gives the terminal back.
func (g *Group) End(grace time.Duration) {
	defer g.restore()
	if grace > 0 && g.Signal(syscall.SIGTERM) == nil {
		g.wake() // who is stopped could not obey
		if g.gone(grace) {
			return
		}
	}
	_ = g.Signal(syscall.SIGKILL)
	g.gone(killWait)
}

const (
	// killWait bounds how long the kernel may take to end what was killed; a process in
	// uninterruptible sleep can take longer.
	killWait = 2 * time.Second
	poll     = 5 * time.Millisecond
)

// gone waits until the group has no process left, and reports false when that takes longer than
// limit.
func (g *Group) gone(limit time.Duration) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for g.alive() {
		select {
		case <-deadline.C:
			return !g.alive()
		case <-ticker.C:
		}
	}
	return true
}
