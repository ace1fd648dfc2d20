package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests start the local stack as a separate process, as a user does.

// patience is the timeout of a start, which may have to compile the functions on a busy machine.
const patience = 3 * time.Minute

// program is the path of the local stack's binary. TestMain builds it once.
var program string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "sluice-localstack-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "localstack")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", program,
		".").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%w: %s", err, out)
	}
	return m.Run(), nil
}

type ready struct {
	APIURL      string            `json:"api_url"`
	AWSEndpoint string            `json:"aws_endpoint"`
	RedisURL    string            `json:"redis_url"`
	Queues      map[string]string `json:"queues"`
}

type running struct {
	*exec.Cmd

	ready       ready
	out, errOut *bytes.Buffer
}

// up starts the stack on free ports and waits for its ready file.
func up(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	args = append([]string{"up", "--api-addr", "127.0.0.1:0", "--aws-addr", "127.0.0.1:0", "--lock-nodes", "0",
		"--functions", "2", "--ready-file", file}, args...)
	r := &running{Cmd: exec.CommandContext(context.Background(), program, args...), out: &bytes.Buffer{},
		errOut: &bytes.Buffer{}}
	r.Stdout, r.Stderr, r.Env = r.out, r.errOut, env
	require.NoError(t, r.Start())
	t.Cleanup(func() { _ = r.Process.Kill() })
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file) //nolint:gosec // the test's own file
		return err == nil && json.Unmarshal(text, &r.ready) == nil
	}, patience, 5*time.Millisecond, "the ready file must exist and be complete")
	return r
}

// descendants returns the children of a process and all their descendants.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-eo", "pid=,ppid=").Output()
	require.NoError(t, err)
	children := make(map[int][]int)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		child, _ := strconv.Atoi(f[0])
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], child)
	}
	var all []int
	for next := []int{pid}; len(next) > 0; {
		found := children[next[0]]
		all, next = append(all, found...), append(next[1:], found...)
	}
	return all
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestUp(t *testing.T) {
	t.Parallel()
	t.Run("serves until a signal and leaves no child process", func(t *testing.T) {
		t.Parallel()
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(signal.String(), func(t *testing.T) {
				t.Parallel()
				s := up(t, os.Environ(), "--queues", "orders,pay.fifo")
				require.Contains(t, s.ready.Queues, "pay.fifo")
				require.True(t, strings.HasPrefix(s.ready.AWSEndpoint, "http://127.0.0.1:"))
				require.True(t, strings.HasPrefix(s.ready.RedisURL, "redis://127.0.0.1:"))
				w, err := http.Get(s.ready.APIURL + "/v1/queues/orders") //nolint:noctx // a test
				require.NoError(t, err)
				require.NoError(t, w.Body.Close())
				require.Equal(t, http.StatusOK, w.StatusCode)

				children := descendants(t, s.Process.Pid)
				require.Len(t, children, 1+4*2, "one redis-server and two processes per function")
				require.NoError(t, s.Process.Signal(signal))
				require.NoError(t, s.Wait(), "%s", s.errOut)
				for _, pid := range children {
					require.Eventually(t, func() bool { return !alive(pid) }, patience, 5*time.Millisecond)
				}
				require.Contains(t, s.out.String(), "Sluice is up")
				require.Contains(t, s.out.String(), "stopping…")
			})
		}
	})

	t.Run("no redis-server: runs on miniredis and reports it", func(t *testing.T) {
		t.Parallel()
		s := up(t, append(os.Environ(), "REDIS_SERVER=", "PATH="+pathWithout(t, "redis-server", "valkey-server")))
		require.NoError(t, s.Process.Signal(syscall.SIGTERM))
		require.NoError(t, s.Wait(), "%s", s.errOut)
		require.Contains(t, s.out.String(), "embedded miniredis: there is no redis-server on the PATH")
	})

	t.Run("failed start: prints one line", func(t *testing.T) {
		t.Parallel()
		taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
		require.NoError(t, err)
		t.Cleanup(func() { _ = taken.Close() })
		for name, tc := range map[string]struct {
			args []string
			env  []string
			want string
		}{
			"the port of the API is in use": {[]string{"--api-addr", taken.Addr().String()}, os.Environ(),
				"choose another address for the API with --api-addr"},
			"the AWS port is in use": {[]string{"--aws-addr", taken.Addr().String()}, os.Environ(),
				"choose another address for AWS with --aws-addr"},
			"go is not installed": {nil, []string{"PATH=/nowhere"}, "go is not on the PATH"},
			"the queue of a consumer does not exist": {[]string{"--consumer", "x=./localstack/sampleconsumer"},
				os.Environ(), `the queue "x", which is not among --queues`},
			"the given Redis does not answer": {[]string{"--redis", "redis://user:secret@127.0.0.1:1"}, os.Environ(),
				"the Redis at redis://user:xxxxx@127.0.0.1:1 does not answer; start it, or leave --redis out"},
			"the given Redis is not a URL": {[]string{"--redis", "localhost:6379"}, os.Environ(),
				"give a redis:// or rediss:// URL"},
			"the name of a queue is invalid": {[]string{"--queues", "or/ders"}, os.Environ(), `the queue "or/ders"`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				args := []string{"up", "--lock-nodes", "0", "--api-addr", "127.0.0.1:0", "--aws-addr", "127.0.0.1:0"}
				cmd := exec.CommandContext(t.Context(), program, append(args, tc.args...)...)
				cmd.Env = tc.env
				var errOut bytes.Buffer
				cmd.Stdout, cmd.Stderr = io.Discard, &errOut
				require.Error(t, cmd.Run())
				require.Equal(t, 1, cmd.ProcessState.ExitCode())
				var lines []string
				for line := range strings.Lines(errOut.String()) {
					if !strings.HasPrefix(line, "building the functions") { // progress
						lines = append(lines, line)
					}
				}
				require.Len(t, lines, 1, "%s", errOut.String())
				require.Contains(t, lines[0], tc.want)
				require.NotContains(t, lines[0], "secret", "the error must not contain the password")
			})
		}
	})
}

// TestUpTime requires that the stack starts in less than three seconds if the functions are already
// built. The fastest of three starts counts, because other processes may use the machine at the
// same time.
func TestUpTime(t *testing.T) {
	best := time.Hour
	for range 3 {
		started := time.Now()
		s := up(t, os.Environ(), "--lock-nodes", "3", "--functions", "4")
		best = min(best, time.Since(started))
		require.NoError(t, s.Process.Signal(syscall.SIGTERM))
		require.NoError(t, s.Wait())
	}
	require.Less(t, best, 3*time.Second)
}

// pathWithout returns a PATH with every program of the current PATH except the given programs. The
// C compiler remains on the PATH: without it, go would disable cgo and compile every package again.
func pathWithout(t *testing.T, missing ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := os.ReadDir(from) // PATH can list folders that do not exist
		for _, p := range programs {
			if slices.Contains(missing, p.Name()) {
				continue
			}
			if err := os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())); err != nil &&
				!os.IsExist(err) {
				require.NoError(t, err)
			}
		}
	}
	return dir
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"down"}, {"up", "--nonsense"}, {"up", "--consumer", "orders"},
		{"up", "extra", "--api-addr", "127.0.0.1:0"}, {"demo", "extra"},
	} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%v", args)
		require.Contains(t, string(out), "Usage: go run ./localstack <command>")
		if len(args) > 1 && args[1] == "extra" {
			require.Contains(t, string(out), `unexpected argument "extra"; `+args[0]+` takes flags only`)
		}
	}
}

func TestDemo(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), program, "demo", "-without-tofu").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "neither tofu nor terraform is installed")
	require.Contains(t, string(out), "sluice policies put exports, with a limit of 6")
}
