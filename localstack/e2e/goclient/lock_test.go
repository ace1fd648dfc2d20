package goclient

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/fence"
)

func TestLock(t *testing.T) {
	t.Parallel()
	t.Run("is acquired, renewed, inspected and released with every consistency", func(t *testing.T) {
		t.Parallel()
		for _, at := range []client.Consistency{
			client.ConsistencyRedis, client.ConsistencyQuorum, client.ConsistencyStrong,
		} {
			t.Run(string(at), func(t *testing.T) {
				t.Parallel()
				c, ctx, lock := connect(t), t.Context(), name("order:42")
				o := client.LockOptions{TTL: 2 * time.Second, Owner: "ann", Metadata: map[string]string{"pod": "a-1"},
					Consistency: at}
				l, err := c.Lock(ctx, lock, o)
				require.NoError(t, err)

				first, err := c.Inspect(ctx, lock, at)
				require.NoError(t, err)
				require.True(t, first.Held)
				require.Equal(t, "ann", first.Holders[0].Owner)
				require.Equal(t, l.Fence(), first.Holders[0].Fence)
				require.JSONEq(t, `{"pod":"a-1"}`, string(first.Holders[0].Metadata))
				require.Eventually(t, func() bool {
					now, err := c.Inspect(ctx, lock, at)
					renewed := first.Holders[0].ExpiresAt.Add(2 * o.TTL)
					return err == nil && now.Held && now.Holders[0].ExpiresAt.After(renewed)
				}, patience, 50*time.Millisecond, "the client must renew the lease")
				require.NoError(t, l.Err())

				_, err = c.TryLock(ctx, lock, client.LockOptions{Consistency: at})
				require.ErrorIs(t, err, client.ErrLockHeld)
				require.NoError(t, l.Unlock(ctx))
				next, err := c.TryLock(ctx, lock, o)
				require.NoError(t, err)
				require.Greater(t, next.Fence(), l.Fence())
				require.NoError(t, next.Unlock(ctx))
			})
		}
	})

	t.Run("has the caller's ARN as its owner by default", func(t *testing.T) {
		t.Parallel()
		c, ctx, lock := connect(t), t.Context(), name("lock")
		l, err := c.Lock(ctx, lock, client.LockOptions{})
		require.NoError(t, err)
		state, err := c.Inspect(ctx, lock, "")
		require.NoError(t, err)
		require.Contains(t, state.Holders[0].Owner, accessKey)
		require.NoError(t, l.Unlock(ctx))
	})

	t.Run("ends its context after a forced release", func(t *testing.T) {
		t.Parallel()
		c, ctx, lock := connect(t), t.Context(), name("lock")
		l, err := c.Lock(ctx, lock, client.LockOptions{TTL: 2 * time.Second})
		require.NoError(t, err)
		n, err := c.ForceRelease(ctx, lock, "")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		select {
		case <-l.Context().Done():
		case <-time.After(patience):
		}
		require.ErrorIs(t, context.Cause(l.Context()), client.ErrForced)
		require.ErrorIs(t, l.Unlock(ctx), client.ErrForced)
	})

	t.Run("has one holder at a time, with increasing fences", func(t *testing.T) {
		t.Parallel()
		c, lock := connect(t), name("lock")
		guard := fence.New(nil)
		var inside atomic.Int64
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 5 {
					l, err := c.Lock(context.Background(), lock,
						client.LockOptions{TTL: 5 * time.Second, Wait: time.Minute})
					if !assertNoError(t, err) {
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders at the same time", n)
					}
					assertNoError(t, guard.Check(context.Background(), lock, l.Fence()))
					inside.Add(-1)
					assertNoError(t, l.Unlock(context.Background()))
				}
			})
		}
		wait.Wait()
	})

	t.Run("admits shared holders together but no exclusive holder", func(t *testing.T) {
		t.Parallel()
		c, ctx, lock := connect(t), t.Context(), name("lock")
		shared := client.LockOptions{Mode: client.LockShared}
		a, err := c.TryLock(ctx, lock, shared)
		require.NoError(t, err)
		b, err := c.TryLock(ctx, lock, shared)
		require.NoError(t, err)
		_, err = c.TryLock(ctx, lock, client.LockOptions{})
		require.ErrorIs(t, err, client.ErrLockHeld)
		require.NoError(t, a.Unlock(ctx))
		require.NoError(t, b.Unlock(ctx))
		x, err := c.TryLock(ctx, lock, client.LockOptions{})
		require.NoError(t, err)
		require.NoError(t, x.Unlock(ctx))
	})

	t.Run("is resumed by another client", func(t *testing.T) {
		t.Parallel()
		c, ctx, lock := connect(t), t.Context(), name("lock")
		l, err := c.Lock(ctx, lock, client.LockOptions{TTL: 5 * time.Second})
		require.NoError(t, err)
		token, err := l.Detach()
		require.NoError(t, err)
		other := connect(t)
		taken, err := other.Resume(ctx, lock, token, client.LockOptions{TTL: 5 * time.Second})
		require.NoError(t, err)
		require.Equal(t, l.Fence(), taken.Fence())
		require.NoError(t, taken.Unlock(ctx))
		_, err = other.Resume(ctx, lock, token, client.LockOptions{})
		require.ErrorIs(t, err, client.ErrLockNotHeld)
	})

	t.Run("is free for others after a canceled wait", func(t *testing.T) {
		t.Parallel()
		c, lock := connect(t), name("lock")
		l, err := c.Lock(t.Context(), lock, client.LockOptions{TTL: 30 * time.Second})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := c.Lock(ctx, lock, client.LockOptions{TTL: time.Hour})
			failed <- err
		}()
		require.Eventually(t, func() bool {
			state, err := c.Inspect(t.Context(), lock, "")
			return err == nil && state.Waiters == 1
		}, patience, 10*time.Millisecond)
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		require.NoError(t, l.Unlock(t.Context()))
		next, err := c.Lock(t.Context(), lock, client.LockOptions{Wait: patience})
		require.NoError(t, err, "a lock that is granted after the cancellation must be released")
		require.NoError(t, next.Unlock(t.Context()))
	})

	t.Run("invalid: is refused, and the error lists every invalid field", func(t *testing.T) {
		t.Parallel()
		_, err := connect(t).TryLock(t.Context(), name("lock"),
			client.LockOptions{TTL: 2 * time.Hour, Mode: "write", Token: "short"})
		require.ErrorIs(t, err, client.ErrInvalidRequest)
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.RequestID)
		var fields []string
		for _, f := range e.Fields {
			fields = append(fields, f.Field)
		}
		require.ElementsMatch(t, []string{"ttl_ms", "mode", "token"}, fields)
	})
}

func assertNoError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestSemaphore(t *testing.T) {
	t.Parallel()
	c, ctx, lock := connect(t), t.Context(), name("pool")
	l, err := c.TryLock(ctx, lock, client.LockOptions{})
	require.NoError(t, err)
	s := c.Semaphore(lock, 2)
	a, err := s.TryAcquire(ctx, client.LockOptions{})
	require.NoError(t, err)
	b, err := s.TryAcquire(ctx, client.LockOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, b.InUse())
	_, err = s.TryAcquire(ctx, client.LockOptions{})
	require.ErrorIs(t, err, client.ErrLockHeld)
	state, err := s.Inspect(ctx)
	require.NoError(t, err)
	require.Len(t, state.Holders, 2)
	require.NoError(t, a.Unlock(ctx))
	n, err := s.ForceRelease(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Error(t, b.Unlock(ctx))
	require.NoError(t, l.Unlock(ctx))
}
