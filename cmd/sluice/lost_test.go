package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// family returns a script that runs a shell, its child and its grandchild. They ignore SIGTERM, and
// write their process IDs to the file.
func family(file string) string {
	return `trap "" TERM; echo $$ >>` + file + `; sh -c 'echo $$ >>` + file + `; sh -c "echo \$\$ >>` + file +
		`; echo ready >$READY; exec sleep 300"; :' ; :`
}

func TestLockLost(t *testing.T) {
	t.Parallel()
	t.Run("ends the group before the lease ends if the API is unreachable", func(t *testing.T) {
		t.Parallel()
		for name, fail := range map[string]func(*proxy){"killed": (*proxy).kill, "hung": (*proxy).hang} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lock, file, between := "lost-"+name, filepath.Join(t.TempDir(), "pids"), newProxy(t)
				p := running(t, between.url(), []string{lock, "--ttl", "3s", "--grace", "300ms"}, family(file))
				family := pids(t, file)
				require.Len(t, family, 3)
				// Wait for the first renewal.
				first := held(t, lock).Holders[0].ExpiresAt
				require.Eventually(t, func() bool {
					return held(t, lock).Holders[0].ExpiresAt.After(first)
				}, patience, 5*time.Millisecond)
				fail(between)
				leaseEnds := held(t, lock).Holders[0].ExpiresAt

				require.Eventually(t, func() bool { return !anyAlive(family) }, patience, time.Millisecond)
				require.True(t, time.Now().Before(leaseEnds), "the last process ended %s after the lease",
					time.Since(leaseEnds))
				require.True(t, time.Now().After(leaseEnds.Add(-1500*time.Millisecond)),
					"the group is not ended while a renewal may succeed")
				require.Equal(t, 76, p.wait(t))
				require.Contains(t, p.err.String(), "is lost: the lease could not be renewed in time")
				require.Contains(t, p.err.String(), "ending the command")
			})
		}
	})

	t.Run("gives the command time to handle SIGTERM", func(t *testing.T) {
		t.Parallel()
		lock, file, between := name("lock"), filepath.Join(t.TempDir(), "cleaned"), newProxy(t)
		script := `trap "sleep 0.1; echo cleaned >` + file +
			`; exit 0" TERM; echo ready >$READY; while :; do sleep 0.02; done`
		p := running(t, between.url(), []string{lock, "--ttl", "3s", "--grace", "1s"}, script)
		between.kill()
		require.Equal(t, 76, p.wait(t), "76 reports the lost lock, although the command exits with 0")
		require.True(t, contains(file, "cleaned"))
	})

	t.Run("kills the group after a forced release", func(t *testing.T) {
		t.Parallel()
		lock, file := name("lock"), filepath.Join(t.TempDir(), "pids")
		p := running(t, system.APIURL, []string{lock, "--ttl", "2s", "--grace", "900ms"}, family(file))
		family := pids(t, file)
		does(t, "lock", "release", lock, "--force")
		forced := time.Now()
		require.Equal(t, 76, p.wait(t))
		require.Less(t, time.Since(forced), 2*time.Second,
			"the group ends at the next renewal, without --grace, because another holder may have the lock")
		require.False(t, anyAlive(family))
		require.Contains(t, p.err.String(), "the lock was released by force")
	})
}

func TestGroup(t *testing.T) {
	t.Parallel()
	t.Run("ends processes that the command leaves behind", func(t *testing.T) {
		t.Parallel()
		lock, file := name("lock"), filepath.Join(t.TempDir(), "pids")
		p := running(t, system.APIURL, []string{lock, "--ttl", "4s", "--grace", "200ms"},
			`sh -c 'trap "" TERM; echo $$ >>`+file+`; echo ready >$READY; sleep 300; :' & `+
				`while [ ! -s $READY ]; do sleep 0.01; done; exit 3`)
		left := pids(t, file)
		require.Equal(t, 3, p.wait(t))
		require.False(t, anyAlive(left), "no process runs without the lock")
		require.False(t, held(t, lock).Held)
	})

	t.Run("renews the lease despite SIGTSTP", func(t *testing.T) {
		t.Parallel()
		lock := name("lock")
		p := running(t, system.APIURL, []string{lock, "--ttl", "1s"}, `echo ready >$READY; exec sleep 300`)
		require.NoError(t, p.Process.Signal(syscall.SIGTSTP))
		first := held(t, lock).Holders[0].ExpiresAt
		require.Eventually(t, func() bool {
			state := held(t, lock)
			return state.Held && state.Holders[0].ExpiresAt.After(first.Add(2*time.Second))
		}, patience, 20*time.Millisecond)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 128+15, p.wait(t))
	})

	t.Run("ends when the program is killed", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "pids")
		p := running(t, system.APIURL, []string{name("lock")}, `echo $$ >`+file+`; echo ready >$READY; exec sleep 300`)
		require.NoError(t, p.Process.Kill())
		require.Eventually(t, func() bool { return !anyAlive(pids(t, file)) }, patience, 5*time.Millisecond)
	})
}
