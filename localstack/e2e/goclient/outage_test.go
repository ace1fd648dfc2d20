package goclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// It is not parallel: the parallel tests start after it, when Redis is available again.
func TestOutage(t *testing.T) {
	c, ctx, lock := connect(t), t.Context(), name("lock")
	held, err := c.Lock(ctx, lock, client.LockOptions{TTL: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, system.StopRedis(ctx))
	started := time.Now()

	_, err = c.TryLock(ctx, name("lock"), client.LockOptions{})
	require.ErrorIs(t, err, client.ErrStoreUnavailable, "a lock fails immediately")
	require.Less(t, time.Since(started), 2*time.Second)

	receipt, err := c.Queue("orders").Push(ctx, client.Job{Payload: "kept", Delay: time.Hour})
	require.NoError(t, err, "a job is accepted nevertheless")
	require.Equal(t, "enqueue-outbox", receipt.Degraded)

	select {
	case <-held.Context().Done():
	case <-time.After(patience):
	}
	require.ErrorIs(t, context.Cause(held.Context()), client.ErrStoreUnreachable)
	require.LessOrEqual(t, time.Since(started), 2*time.Second, "before the lease ended")

	require.NoError(t, system.StartRedis(ctx))
	require.Error(t, held.Unlock(ctx), "Unlock reports that the lock was lost")
	l, err := c.Lock(ctx, name("lock"), client.LockOptions{Wait: patience})
	require.NoError(t, err, "a wait continues when Redis is available again")
	require.NoError(t, l.Unlock(ctx))
}
