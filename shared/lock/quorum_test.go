package lock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

func TestQuorum(t *testing.T) {
	t.Parallel()
	t.Run("needs at least three nodes", func(t *testing.T) {
		t.Parallel()
		_, err := lock.NewQuorum(nil)
		require.ErrorContains(t, err, "at least 3 nodes")
	})

	// With one hanging node of three, redsync takes 5 s to acquire and 5 s to release a lock.
	t.Run("one hanging node of three costs at most 250 ms", func(t *testing.T) {
		t.Parallel()
		boundsAHangingNode(t)
	})

	t.Run("a lock survives the loss of a minority of nodes and their data", func(t *testing.T) {
		t.Parallel()
		for lost := range 3 {
			survivesTheLossOf(t, lost)
		}
	})

	t.Run("the fence rises although the nodes' clocks and data differ", func(t *testing.T) {
		t.Parallel()
		raisesTheFenceOnDifferentNodes(t)
	})

	t.Run("without a majority: fails within 500 ms and leaves nothing behind", func(t *testing.T) {
		t.Parallel()
		failsWithoutAMajority(t)
	})
}

func boundsAHangingNode(t *testing.T) {
	ctx := t.Context()
	q, nodes := openQuorum(t, lock.NodeTimeout)
	lease, err := q.Acquire(ctx, lock.Request{Name: "warm", TTL: ttl})
	require.NoError(t, err)
	for _, n := range nodes { // the slowest node may grant after Acquire has returned
		node := openProductionStore(t, n)
		require.Eventually(t, func() bool {
			state, err := node.Inspect(ctx, lease.Key)
			return err == nil && state.Held
		}, prompt, time.Millisecond)
	}

	require.NoError(t, nodes[0].Server.Pause())
	for _, call := range []func() error{
		func() error { _, err := q.Renew(ctx, lease.Key, lease.Token, ttl); return err },
		func() error { _, err := q.Release(ctx, lease.Key, lease.Token); return err },
		func() error { _, err := q.Inspect(ctx, lease.Key); return err },
		func() error { _, err := q.Acquire(ctx, lock.Request{Name: "report"}); return err },
	} {
		started := time.Now()
		require.NoError(t, call())
		require.Less(t, time.Since(started), 250*time.Millisecond)
	}
}

func survivesTheLossOf(t *testing.T, node int) {
	t.Helper()
	ctx := t.Context()
	q, nodes := openQuorum(t, time.Second)
	ann, err := q.Acquire(ctx, lock.Request{Name: "report", Owner: "ann", TTL: time.Minute})
	require.NoError(t, err)
	require.NoError(t, nodes[node].Client.FlushAll(ctx).Err())

	_, err = q.Acquire(ctx, lock.Request{Name: "report"})
	require.ErrorIs(t, err, lock.ErrHeld)
	renewed, err := q.Renew(ctx, ann.Key, ann.Token, time.Minute)
	require.NoError(t, err)
	require.Equal(t, ann.Fence, renewed.Fence)
	_, err = q.Release(ctx, ann.Key, ann.Token)
	require.NoError(t, err)
	bob, err := q.Acquire(ctx, lock.Request{Name: "report"})
	require.NoError(t, err)
	require.Greater(t, bob.Fence, ann.Fence)
}

func raisesTheFenceOnDifferentNodes(t *testing.T) {
	const fenceOffset = 28 // position of the fence in the state string
	ctx := t.Context()
	q, nodes := openQuorum(t, time.Second)
	last := int64(0)
	for round := range 12 {
		// One node has a fence from the future, as if its clock had been ahead. Another node has
		// lost all data.
		future := time.Now().Add(time.Duration(round+1) * time.Hour).UnixMicro()
		fence := fmt.Sprintf("%016d", future)
		require.NoError(t, nodes[round%3].Client.SetRange(ctx, "{lock:report}", fenceOffset, fence).Err())
		require.NoError(t, nodes[(round+1)%3].Client.FlushAll(ctx).Err())

		req := lock.Request{Name: "report", Token: newToken(), TTL: ttl}
		lease, err := q.Acquire(ctx, req)
		require.NoError(t, err)
		require.Greater(t, lease.Fence, last)
		again, err := q.Acquire(ctx, req)
		require.NoError(t, err)
		require.GreaterOrEqual(t, again.Fence, lease.Fence)
		last = again.Fence
		_, err = q.Release(ctx, lease.Key, lease.Token)
		require.NoError(t, err)
	}
}

func failsWithoutAMajority(t *testing.T) {
	ctx := t.Context()
	q, nodes := openQuorum(t, lock.NodeTimeout)
	held, err := q.Acquire(ctx, lock.Request{Name: "held", TTL: time.Minute})
	require.NoError(t, err)
	require.NoError(t, nodes[0].Server.Kill())
	require.NoError(t, nodes[1].Server.Pause())

	for method, call := range map[string]func() error{
		"Acquire": func() error {
			_, err := q.Acquire(ctx, lock.Request{Name: "free", Wait: lock.MaxWait})
			return err
		},
		"Renew":   func() error { _, err := q.Renew(ctx, held.Key, held.Token, ttl); return err },
		"Release": func() error { _, err := q.Release(ctx, held.Key, held.Token); return err },
		"Inspect": func() error { _, err := q.Inspect(ctx, held.Key); return err },
		"Force":   func() error { _, err := q.Force(ctx, held.Key); return err },
	} {
		started := time.Now()
		err := call()
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%s: %v", method, err)
		require.Less(t, time.Since(started), failLimit, method)
	}

	left := openProductionStore(t, nodes[2])
	state, err := left.Inspect(ctx, lock.Key{Name: "free"})
	require.NoError(t, err)
	require.False(t, state.Held, "the remaining node released its grant")
}
