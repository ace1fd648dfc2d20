// Package group runs a command in its own process group, and ends the group: the command and all
// its descendants.
//
// It does not end a process that has left the group, for example a daemon that has called setsid.
package group

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Group is a running command with the processes that it has started.
type Group struct {
	cmd     *exec.Cmd
	pgid    int
	exited  chan struct{}
	restore func() // makes this process the foreground of the terminal again
}

// Start starts cmd. Its standard streams must be files or nil, so that a process that outlives the
// command cannot block cmd.Wait.
//
// If standard input is a terminal and this process is in its foreground, the new group becomes the
// foreground process group: it receives signals such as Ctrl-C, and can read from the terminal. On
// Linux the kernel kills the command if this process is killed.
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
		// With Pdeathsig, the kernel kills the command when the thread that started it ends. So the
		// thread must not end before the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ExitCode reads the result from cmd.ProcessState
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

// Exited returns a channel that is closed when the command has ended. Other processes of the group
// may still run.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// ExitCode returns the exit code of the command: 128 + n if the signal n ended the command, as in a
// shell. Call it only after the channel of [Group.Exited] is closed.
func (g *Group) ExitCode() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// End sends SIGTERM to the group, and SIGKILL if a process still runs after grace. It returns when
// no process is left, at the latest killWait after SIGKILL. Before it returns, it makes the group
// of this process the foreground of the terminal again.
func (g *Group) End(grace time.Duration) {
	defer g.restore()
	if grace > 0 && g.Signal(syscall.SIGTERM) == nil {
		g.wake() // a stopped process would not handle SIGTERM
		if g.waitEmpty(grace) {
			return
		}
	}
	_ = g.Signal(syscall.SIGKILL)
	g.waitEmpty(killWait)
}

const (
	// killWait is the maximum wait for the end of killed processes. A process in uninterruptible
	// sleep can take longer.
	killWait = 2 * time.Second
	// poll is the interval at which the group is checked for processes.
	poll = 5 * time.Millisecond
)

// waitEmpty waits until the group has no process. It reports false if a process is left when the
// time limit has passed.
func (g *Group) waitEmpty(limit time.Duration) bool {
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
