package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
)

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("serves waiters in order of arrival", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, servesInOrder)
	})

	t.Run("a stream of readers does not starve a writer", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, doesNotStarveWriters)
	})

	// A process that died while it waited is first in the queue.
	t.Run("skips a dead waiter after its heartbeat has ended", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, passesOverDeadWaiters)
	})

	// The ledger server blnk released a lock with the context of the request, which had ended. The
	// key remained in Redis until its TTL.
	t.Run("canceled: leaves nothing behind, and the next waiter is woken", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, leavesWhenCanceled)
	})
}

func servesInOrder(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
	ctx, name := t.Context(), redistest.Name("lock")
	holder, err := s.Acquire(ctx, lock.Request{Name: name, TTL: time.Minute})
	require.NoError(t, err)

	const waiters = 5
	served := make(chan int, waiters)
	var done sync.WaitGroup
	for i := range waiters {
		done.Go(func() {
			lease, err := s.Acquire(ctx, lock.Request{Name: name, Wait: lock.MaxWait, TTL: time.Minute})
			if err != nil {
				return
			}
			served <- i
			_, _ = s.Release(ctx, lease.Key, lease.Token)
		})
		require.Eventually(t, hasWaiters(t, s, holder.Key, int64(i+1)), prompt, time.Millisecond)
	}
	_, err = s.Acquire(ctx, lock.Request{Name: name})
	require.ErrorIs(t, err, lock.ErrHeld)
	_, err = s.Release(ctx, holder.Key, holder.Token)
	require.NoError(t, err)
	done.Wait()
	close(served)

	var order []int
	for i := range served {
		order = append(order, i)
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
}

// New readers queue behind a waiting writer; otherwise a stream of readers would starve it.
func doesNotStarveWriters(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
	name := redistest.Name("lock")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				lease, err := s.Acquire(ctx, lock.Request{Name: name, Mode: lock.Shared, TTL: ttl, Wait: time.Second})
				if err == nil {
					<-time.After(10 * time.Millisecond) // long enough that the leases of readers overlap
					_, _ = s.Release(context.WithoutCancel(ctx), lease.Key, lease.Token)
				}
			}
		})
	}

	writer, err := s.Acquire(ctx, lock.Request{Name: name, TTL: ttl, Wait: lock.MaxWait})
	require.NoError(t, err)
	require.Less(t, writer.Waited, 2*prompt)
	_, err = s.Release(ctx, writer.Key, writer.Token)
	require.NoError(t, err)
	stop()
	readers.Wait()
}

func passesOverDeadWaiters(t *testing.T, r *redistest.Redis, s *lock.Redis) {
	ctx, name := t.Context(), redistest.Name("lock")
	holder, err := s.Acquire(ctx, lock.Request{Name: name, TTL: time.Minute})
	require.NoError(t, err)

	state := "{lock:" + name + "}"
	heartbeatEnd := time.Now().Add(time.Second)
	require.NoError(t, r.Client.ZAdd(ctx, state+":queue", redis.Z{Score: 1, Member: "dead"}).Err())
	beat := redis.Z{Score: float64(heartbeatEnd.UnixMicro()), Member: "dead"}
	require.NoError(t, r.Client.ZAdd(ctx, state+":beats", beat).Err())
	require.NoError(t, r.Client.SetRange(ctx, state, 0, "1").Err())
	_, err = s.Release(ctx, holder.Key, holder.Token)
	require.NoError(t, err)

	_, err = s.Acquire(ctx, lock.Request{Name: name})
	f := locktest.RequireFault(t, err, fault.LockHeld)
	require.Contains(t, f.Detail, "reserved for a caller that waits")
	next, err := s.Acquire(ctx, lock.Request{Name: name, Wait: lock.MaxWait})
	require.NoError(t, err)
	require.False(t, next.AcquiredAt.Before(heartbeatEnd.Truncate(time.Microsecond)))
	require.Less(t, next.Waited, prompt)
}

func leavesWhenCanceled(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
	name := redistest.Name("lock")
	holder, err := s.Acquire(t.Context(), lock.Request{Name: name, TTL: time.Minute})
	require.NoError(t, err)

	canceled, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := s.Acquire(canceled, lock.Request{Name: name, TTL: ttl, Wait: lock.MaxWait})
		result <- err
	}()
	require.Eventually(t, hasWaiters(t, s, holder.Key, 1), prompt, time.Millisecond)

	granted := make(chan lock.Lease, 1)
	go func() {
		lease, _ := s.Acquire(t.Context(), lock.Request{Name: name, TTL: ttl, Wait: lock.MaxWait})
		granted <- lease
	}()
	require.Eventually(t, hasWaiters(t, s, holder.Key, 2), prompt, time.Millisecond)

	cancel()
	err = <-result
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lock.ErrHeld, "the error also matches ErrHeld")
	require.Eventually(t, hasWaiters(t, s, holder.Key, 1), prompt, time.Millisecond)
	_, err = s.Release(t.Context(), holder.Key, holder.Token)
	require.NoError(t, err)
	next := <-granted
	require.NotEmpty(t, next.Token)
	require.Less(t, next.Waited, prompt)
}
