// The tests run the program as a process, against the local stack.
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

// patience is the timeout of the tests. It is long enough for a busy machine.
const patience = 20 * time.Second

var (
	system *stack.Stack
	binary string
)

// TestMain builds the program and starts the local stack.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-cli-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", binary, ".") //nolint:noctx // a build has no caller
	if out, err := build.CombinedOutput(); err != nil {
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

// command prepares a run of the program with an endpoint. The caller may change the process before
// start.
func command(t *testing.T, endpoint string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...) //nolint:gosec // the program under test
	p := &process{Cmd: cmd, exited: make(chan struct{})}
	path := os.Getenv("PATH") //nolint:forbidigo // a test has no main
	p.Env = []string{"PATH=" + path, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	if endpoint != "" {
		p.Env = append(p.Env, "SLUICE_ENDPOINT="+endpoint)
	}
	p.Stdout, p.Stderr = &p.out, &p.err
	p.WaitDelay = time.Second // Wait returns even if a child that outlives the program keeps its pipes open
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

// wait waits until the program has ended, and returns its exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.Fail(t, "the program does not end", p.err.String())
	}
	return p.ProcessState.ExitCode()
}

// sluice runs the program and returns its output and its exit code.
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

// does runs the program, which must succeed, and returns its output.
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
