package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// running starts `sluice lock run` with a shell script, and waits until the script has written
// "ready" to the file in $READY.
func running(t *testing.T, endpoint string, args []string, script string) *process {
	t.Helper()
	p := command(t, endpoint, append(append([]string{"lock", "run"}, args...), "--", "sh", "-c", script)...)
	ready := filepath.Join(t.TempDir(), "ready")
	p.Env = append(p.Env, "READY="+ready)
	p.start(t)
	t.Cleanup(func() { _ = p.Process.Kill() })
	require.Eventually(t, func() bool { return contains(ready, "ready") }, patience, 5*time.Millisecond, "%s", &p.err)
	return p
}

func contains(file, text string) bool {
	got, err := os.ReadFile(file) //nolint:gosec // a file of the test
	return err == nil && strings.Contains(string(got), text)
}

func held(t *testing.T, lock string) client.LockState {
	t.Helper()
	state, err := connect(t).Inspect(t.Context(), lock, "")
	require.NoError(t, err)
	return state
}

func TestLockRun(t *testing.T) {
	t.Parallel()
	t.Run("passes the fence and the token to the command", func(t *testing.T) {
		t.Parallel()
		lock, file := name("lock"), filepath.Join(t.TempDir(), "env")
		script := `env >` + file + `; echo ready >$READY; while [ ! -e ` + file + `.go ]; do sleep 0.02; done; exit 7`
		p := running(t, system.APIURL, []string{lock, "--owner", "ann"}, script)
		state := held(t, lock)
		require.True(t, state.Held)
		require.Equal(t, "ann", state.Holders[0].Owner)
		require.Contains(t, does(t, "lock", "status", lock), lock+" is held (exclusive)\nOWNER")

		env, err := os.ReadFile(file) //nolint:gosec // a file of the test
		require.NoError(t, err)
		require.Contains(t, string(env), "SLUICE_LOCK_NAME="+lock+"\n")
		require.Contains(t, string(env), fmt.Sprintf("SLUICE_FENCE=%d\n", state.Holders[0].Fence))
		require.Regexp(t, `(?m)^SLUICE_LOCK_TOKEN=\S{26}$`, string(env))
		require.Contains(t, string(env), "SLUICE_ENDPOINT="+system.APIURL+"\n", "the command can use sluice")

		require.NoError(t, os.WriteFile(file+".go", nil, 0o600))
		require.Equal(t, 7, p.wait(t), "the command's exit code is kept")
		require.Empty(t, p.err.String())
		require.False(t, held(t, lock).Held)
		require.Equal(t, lock+" is free\n", does(t, "lock", "status", lock))
	})

	t.Run("exits with the code of the command", func(t *testing.T) {
		t.Parallel()
		plain := filepath.Join(t.TempDir(), "plain")
		require.NoError(t, os.WriteFile(plain, nil, 0o600))
		for name, test := range map[string]struct {
			command []string
			code    int
			says    string
		}{
			"success":           {[]string{"true"}, 0, ""},
			"failure":           {[]string{"sh", "-c", "exit 42"}, 42, ""},
			"ended by a signal": {[]string{"sh", "-c", "kill -9 $$"}, 128 + 9, ""},
			"a command that does not exist": {
				[]string{"no-such-command"}, 127, "sluice: the command \"no-such-command\" does not exist\n",
			},
			"a file that cannot be run": {
				[]string{plain}, 126, "sluice: cannot run " + plain + ": permission denied\n",
			},
		} {
			_, errOut, code := sluice(t, append([]string{"lock", "run", "exit-codes", "--"}, test.command...)...)
			require.Equal(t, test.code, code, name)
			require.Equal(t, test.says, errOut, name)
		}
		require.False(t, held(t, "exit-codes").Held)
	})

	t.Run("passes standard input and output through", func(t *testing.T) {
		t.Parallel()
		out, errOut, code := piped(t, "in\n", "lock", "run", name("lock"), "--", "sh", "-c", "cat; echo err >&2")
		require.Zero(t, code)
		require.Equal(t, "in\n", out)
		require.Equal(t, "err\n", errOut)
	})

	t.Run("waits for a held lock, up to --wait", func(t *testing.T) {
		t.Parallel()
		lock, api := name("lock"), connect(t)
		l, err := api.Lock(t.Context(), lock, client.LockOptions{Owner: "ann"})
		require.NoError(t, err)
		out, errOut, code := sluice(t, "lock", "run", lock, "--wait", "0", "--", "echo", "ran")
		require.Equal(t, 75, code)
		require.Empty(t, out, "the command was not run")
		require.Regexp(t,
			`^sluice: error acquiring the lock "`+lock+`": the lock is held by another token `+
				`\(ann, for another [\d.]+m?s\)\n$`,
			errOut)
		_, _, code = sluice(t, "lock", "run", lock, "--wait", "300ms", "--", "true")
		require.Equal(t, 75, code)

		p := command(t, system.APIURL, "lock", "run", lock, "--", "echo", "ran")
		p.start(t)
		require.Eventually(t, func() bool { return held(t, lock).Waiters == 1 }, patience, 5*time.Millisecond)
		require.NoError(t, l.Unlock(t.Context()))
		require.Zero(t, p.wait(t))
		require.Equal(t, "ran\n", p.out.String())
		require.Contains(t, p.err.String(), "sluice: waiting: ")
	})

	t.Run("runs nothing after an interrupted wait", func(t *testing.T) {
		t.Parallel()
		lock, api := name("lock"), connect(t)
		l, err := api.Lock(t.Context(), lock, client.LockOptions{})
		require.NoError(t, err)
		p := command(t, system.APIURL, "lock", "run", lock, "--ttl", "1h", "--", "echo", "ran")
		p.start(t)
		require.Eventually(t, func() bool { return held(t, lock).Waiters == 1 }, patience, 5*time.Millisecond)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NoError(t, l.Unlock(t.Context()))
		require.Equal(t, 130, p.wait(t))
		require.Empty(t, p.out.String())
		require.Contains(t, p.err.String(), "interrupted while waiting for the lock; the command was not run")
		next, err := api.TryLock(t.Context(), lock, client.LockOptions{})
		require.NoError(t, err, "the program releases a lock that the API granted after the signal")
		require.NoError(t, next.Unlock(t.Context()))
	})

	t.Run("shares locks and semaphores", func(t *testing.T) {
		t.Parallel()
		lock := name("lock")
		p := running(t, system.APIURL, []string{lock, "--shared"}, `echo ready >$READY; exec sleep 60`)
		does(t, "lock", "run", lock, "--shared", "--wait", "0", "--", "true")
		_, _, code := sluice(t, "lock", "run", lock, "--wait", "0", "--", "true")
		require.Equal(t, 75, code)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 128+15, p.wait(t))

		pool := name("pool")
		p = running(t, system.APIURL, []string{pool, "--capacity", "2"}, `echo ready >$READY; exec sleep 60`)
		does(t, "lock", "run", pool, "--capacity", "2", "--wait", "0", "--", "true")
		_, _, code = sluice(t, "lock", "run", pool, "--capacity", "1", "--wait", "0", "--", "true")
		require.Equal(t, 75, code)
		require.Contains(t, does(t, "lock", "status", pool, "--semaphore"), pool+" is held")
		out := does(t, "lock", "release", pool, "--semaphore", "--force")
		require.Equal(t, pool+" was released by force; it had 1 holder\n", out)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		p.wait(t)
	})

	t.Run("passes signals on to the group", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		script := `trap "wait; exit 5" HUP; ` +
			`sh -c 'trap "echo inner >` + dir + `/inner; exit" HUP; echo ready >$READY; ` +
			`while :; do sleep 0.02; done' & ` +
			`while :; do sleep 0.02; done`
		p := running(t, system.APIURL, []string{name("lock")}, script)
		require.NoError(t, p.Process.Signal(syscall.SIGHUP))
		require.Equal(t, 5, p.wait(t))
		require.True(t, contains(dir+"/inner", "inner"))
	})
}

func TestLockRelease(t *testing.T) {
	t.Parallel()
	lock := name("lock")
	l, err := connect(t).Lock(t.Context(), lock, client.LockOptions{TTL: time.Hour})
	require.NoError(t, err)
	token, err := l.Detach()
	require.NoError(t, err)
	_, errOut, code := sluice(t, "lock", "release", lock, "--token", "another-token-of-16")
	require.Equal(t, 3, code)
	require.Contains(t, errOut, "another token holds the lock")
	require.Equal(t, lock+" is released\n", does(t, "lock", "release", lock, "--token", token))
	require.Equal(t, lock+" was free\n", does(t, "lock", "release", lock, "--force"))
}

// pids reads the process IDs that a script has written, one per line.
func pids(t *testing.T, file string) []int {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a file of the test
	require.NoError(t, err)
	var out []int
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		out = append(out, pid)
	}
	return out
}

// alive reports whether a process runs. It returns false for a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func anyAlive(pids []int) bool {
	return slices.ContainsFunc(pids, alive)
}
