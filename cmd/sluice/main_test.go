// The tests drive the program as a real process, against the local stack.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/localstack/stack"
)

// patience is far above what a busy machine needs.
const patience = 20 * time.Second

var (
	system *stack.Stack
	binary string
)

// TestMain builds the program and starts the stack; the exit code is that of m.Run.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-cli-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "sluice")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil { //nolint:noctx // a build has no caller
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Processes: 2, Queues: []string{"orders", "pay.fifo", "quiet"},
	})
	if err != nil {
		panic(err)
	}
	m.Run()
	if err := errors.Join(system.Close(), os.RemoveAll(dir)); err != nil {
		panic(err)
	}
}

// process is a run of the program.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
	exited   chan struct{}
}

// command prepares a run with an endpoint; set more before start.
func command(t *testing.T, endpoint string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), binary, args...), exited: make(chan struct{})} //nolint:gosec // it is the program under test
	p.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}      //nolint:forbidigo // a test is a main of its own
	if endpoint != "" {
		p.Env = append(p.Env, "SLUICE_ENDPOINT="+endpoint)
	}
	p.Stdout, p.Stderr = &p.out, &p.err
	p.WaitDelay = time.Second // children that outlive it hold its pipes open
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Start())
	go func() {
		_ = p.Wait()
		close(p.exited)
	}()
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.Fail(t, "it does not end", p.err.String())
	}
	return p.ProcessState.ExitCode()
}

// sluice runs the program to its end and returns what it printed and its exit code.
func sluice(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	return piped(t, "", args...)
}

func piped(t *testing.T, stdin string, args ...string) (out, errOut string, code int) {
	t.Helper()
	p := command(t, system.APIURL, args...)
	p.Stdin = strings.NewReader(stdin)
	p.start(t)
	code = p.wait(t)
	return p.out.String(), p.err.String(), code
}

// does runs it and demands success.
func does(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := sluice(t, args...)
	require.Zero(t, code, "%v: %s", args, errOut)
	return out
}

func connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Endpoint: system.APIURL, Auth: client.AuthNone})
	require.NoError(t, err)
	return c
}

func name(prefix string) string { return redistest.Name(prefix) }
