package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// redsync with one hung node of three takes five seconds for an acquire and a release.
func TestOneHungNodeOfThreeCostsAtMostAQuarterSecond(t *testing.T) {
	t.Parallel()
	q, nodes := quorum(t, lock.NodeTimeout)
	warm, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "warm"}))
	require.NoError(t, err)
	for _, n := range nodes { // a majority has granted it; the third node follows
		one := lock.NewRedis(conn(t, n.URL))
		require.Eventually(t, func() bool {
			s, err := one.Inspect(t.Context(), lock.Lock, "warm")
			return err == nil && s.Held
		}, prompt, time.Millisecond)
	}
	require.NoError(t, nodes[0].Server.Pause())
	limit := 250 * time.Millisecond
	for _, call := range []func() error{
		func() error { _, err := q.Renew(t.Context(), lock.Lock, "warm", warm.Token, ttl); return err },
		func() error { _, err := q.Release(t.Context(), lock.Lock, "warm", warm.Token); return err },
		func() error { _, err := q.Inspect(t.Context(), lock.Lock, "warm"); return err },
		func() error {
			_, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report"}))
			return err
		},
	} {
		started := time.Now()
		require.NoError(t, call())
		require.Less(t, time.Since(started), limit)
	}
}

func TestALockSurvivesTheLossOfAMinorityWithItsData(t *testing.T) {
	t.Parallel()
	for lost := range 3 {
		q, nodes := quorum(t, time.Second)
		ann, err := q.Acquire(t.Context(), locktest.Request(t,
			lock.Request{Name: "report", Owner: "ann", TTL: time.Minute}))
		require.NoError(t, err)
		require.NoError(t, nodes[lost].Client.FlushAll(t.Context()).Err())
		_, err = q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report"}))
		_ = locktest.Refusal(t, err, fault.LockHeld)
		again, err := q.Renew(t.Context(), lock.Lock, "report", ann.Token, time.Minute)
		require.NoError(t, err)
		require.Equal(t, ann.Fence, again.Fence)
		_, err = q.Release(t.Context(), lock.Lock, "report", ann.Token)
		require.NoError(t, err)
		bob, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report"}))
		require.NoError(t, err)
		require.Greater(t, bob.Fence, ann.Fence)
	}
}

func TestFencesRiseAlsoWhenTheNodesClocksAndMemoriesDiffer(t *testing.T) {
	t.Parallel()
	q, nodes := quorum(t, time.Second)
	last := int64(0)
	for round := range 12 {
		// One node remembers a fence from far ahead, as when its clock was; another one has lost
		// everything.
		ahead := nodes[round%3]
		far := time.Now().Add(time.Duration(round+1) * time.Hour).UnixMicro()
		require.NoError(t, ahead.Client.SetRange(t.Context(), "{lock:report}", 28, number(far)).Err())
		require.NoError(t, nodes[(round+1)%3].Client.FlushAll(t.Context()).Err())
		lease, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report"}))
		require.NoError(t, err)
		require.Greater(t, lease.Fence, last)
		last = lease.Fence
		again, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "report", Token: lease.Token}))
		require.NoError(t, err)
		require.GreaterOrEqual(t, again.Fence, last)
		last = again.Fence
		_, err = q.Release(t.Context(), lock.Lock, "report", lease.Token)
		require.NoError(t, err)
	}
}

func TestWithoutAMajorityALockFailsPromptlyAndNothingStaysBehind(t *testing.T) {
	t.Parallel()
	q, nodes := quorum(t, lock.NodeTimeout)
	ann, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "held", TTL: time.Minute}))
	require.NoError(t, err)
	require.NoError(t, nodes[0].Server.Kill())
	require.NoError(t, nodes[1].Server.Pause())
	for name, call := range map[string]func() error{
		"acquire": func() error {
			_, err := q.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "free", Wait: lock.MaxWait}))
			return err
		},
		"renew":   func() error { _, err := q.Renew(t.Context(), lock.Lock, "held", ann.Token, ttl); return err },
		"release": func() error { _, err := q.Release(t.Context(), lock.Lock, "held", ann.Token); return err },
		"inspect": func() error { _, err := q.Inspect(t.Context(), lock.Lock, "held"); return err },
		"force":   func() error { _, err := q.Force(t.Context(), lock.Lock, "held"); return err },
	} {
		started := time.Now()
		err := call()
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%s: %v", name, err)
		require.Less(t, time.Since(started), 500*time.Millisecond, name)
	}
	left := lock.NewRedis(conn(t, nodes[2].URL))
	s, err := left.Inspect(t.Context(), lock.Lock, "free")
	require.NoError(t, err)
	require.False(t, s.Held, "what the node that is left had granted was given back")
}

func TestAQuorumHasAtLeastThreeNodes(t *testing.T) {
	t.Parallel()
	_, err := lock.NewQuorum(nil)
	require.ErrorContains(t, err, "at least 3 nodes")
}
