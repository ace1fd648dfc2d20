package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// family is a script of a shell, its child and its grandchild, which all ignore SIGTERM and write
// their process ids to the file in $0's place.
func family(file string) string {
	return `trap "" TERM; echo $$ >>` + file + `; sh -c 'echo $$ >>` + file + `; sh -c "echo \$\$ >>` + file +
		`; echo ready >$READY; exec sleep 300"; :' ; :`
}

func TestWhenTheAPIIsGoneTheWholeGroupEndsBeforeTheLeaseDoes(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(*proxy){"killed": (*proxy).kill, "hung": (*proxy).hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lock, file, between := "lost-"+name, filepath.Join(t.TempDir(), "pids"), newProxy(t)
			p := running(t, between.url(), []string{lock, "--ttl", "3s", "--grace", "300ms"}, family(file))
			family := pids(t, file)
			require.Len(t, family, 3)
			// A renewal shows that all is well.
			first := held(t, lock).Holders[0].ExpiresAt
			require.Eventually(t, func() bool {
				return held(t, lock).Holders[0].ExpiresAt.After(first)
			}, patience, 5*time.Millisecond)
			takeAway(between)
			leaseEnds := held(t, lock).Holders[0].ExpiresAt

			require.Eventually(t, func() bool { return !anyAlive(family) }, patience, time.Millisecond)
			require.True(t, time.Now().Before(leaseEnds), "the last of them ended %s after the lease",
				time.Since(leaseEnds))
			require.True(t, time.Now().After(leaseEnds.Add(-1500*time.Millisecond)),
				"they were given their time: renewals are tried again")
			require.Equal(t, 76, p.wait(t))
			require.Contains(t, p.err.String(), "is lost: the lease could not be renewed in time")
			require.Contains(t, p.err.String(), "ending the command")
		})
	}
}

func TestACommandThatObeysSIGTERMMayCleanUp(t *testing.T) {
	t.Parallel()
	lock, file, between := name("lock"), filepath.Join(t.TempDir(), "cleaned"), newProxy(t)
	script := `trap "sleep 0.1; echo cleaned >` + file +
		`; exit 0" TERM; echo ready >$READY; while :; do sleep 0.02; done`
	p := running(t, between.url(), []string{lock, "--ttl", "3s", "--grace", "1s"}, script)
	between.kill()
	require.Equal(t, 76, p.wait(t), "the lock was lost, whatever the command says")
	require.True(t, contains(file, "cleaned"))
}

func TestALockThatIsTakenByForceEndsTheCommandAtOnce(t *testing.T) {
	t.Parallel()
	lock, file := name("lock"), filepath.Join(t.TempDir(), "pids")
	p := running(t, system.APIURL, []string{lock, "--ttl", "2s", "--grace", "900ms"}, family(file))
	family := pids(t, file)
	does(t, "lock", "release", lock, "--force")
	forced := time.Now()
	require.Equal(t, 76, p.wait(t))
	require.Less(t, time.Since(forced), 2*time.Second,
		"at the next renewal, without a grace: somebody else may hold it")
	require.False(t, anyAlive(family))
	require.Contains(t, p.err.String(), "the lock was released by force")
}

func TestWhatTheCommandLeavesBehindEndsBeforeTheLockIsReleased(t *testing.T) {
	t.Parallel()
	lock, file := name("lock"), filepath.Join(t.TempDir(), "pids")
	p := running(t, system.APIURL, []string{lock, "--ttl", "4s", "--grace", "200ms"},
		`sh -c 'trap "" TERM; echo $$ >>`+file+`; echo ready >$READY; sleep 300; :' & while [ ! -s $READY ]; do sleep 0.01; done; exit 3`)
	left := pids(t, file)
	require.Equal(t, 3, p.wait(t))
	require.False(t, anyAlive(left), "nothing works without the lock")
	require.False(t, held(t, lock).Held)
}

func TestAHolderThatIsToldToStopKeepsRenewing(t *testing.T) {
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
}

func TestTheCommandDoesNotOutliveAProgramThatIsKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	p := running(t, system.APIURL, []string{name("lock")}, `echo $$ >`+file+`; echo ready >$READY; exec sleep 300`)
	require.NoError(t, p.Process.Kill())
	require.Eventually(t, func() bool { return !anyAlive(pids(t, file)) }, patience, 5*time.Millisecond)
}
