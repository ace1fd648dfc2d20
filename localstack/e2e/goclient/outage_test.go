package goclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// TestOutage is not parallel. The parallel tests start after it, when Redis is available again.
func TestOutage(t *testing.T) {
	c, ctx, lock := connect(t), t.Context(), name("lock")
	held, err := c.Lock(ctx, lock, client.LockOptions{TTL: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, system.StopRedis(ctx))
	started := time.Now()

	_, err = c.TryLock(ctx, name("lock"), client.LockOptions{})
	require.ErrorIs(t, err, client.ErrStoreUnavailable, "TryLock must fail without a wait")
	require.Less(t, time.Since(started), 2*time.Second)

	receipt, err := c.Queue("orders").Push(ctx, client.Job{Payload: "kept", Delay: time.Hour})
	require.NoError(t, err, "a job must be accepted without Redis")
	require.Equal(t, "enqueue-outbox", receipt.Degraded)

	select {
	case <-held.Context().Done():
	case <-time.After(patience):
	}
	require.ErrorIs(t, context.Cause(held.Context()), client.ErrStoreUnreachable)
	require.LessOrEqual(t, time.Since(started), 2*time.Second, "the context must end before the lease")

	require.NoError(t, system.StartRedis(ctx))
	require.Error(t, held.Unlock(ctx), "Unlock must report that the lock was lost")
	l, err := c.Lock(ctx, name("lock"), client.LockOptions{Wait: patience})
	require.NoError(t, err, "Lock must wait until Redis is available again")
	require.NoError(t, l.Unlock(ctx))
}
