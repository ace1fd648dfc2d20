package lock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const (
	ttl    = 5 * time.Second
	prompt = 3 * time.Second // far below ttl, and far above what a busy machine needs
)

func open(t *testing.T, r *redistest.Redis) *lock.Redis {
	t.Helper()
	l := lock.NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 5 * time.Second}))
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func request(t *testing.T, q lock.Request) lock.Request {
	t.Helper()
	if q.TTL == 0 {
		q.TTL = ttl
	}
	q, err := q.Normalize()
	require.NoError(t, err)
	return q
}

func refusal(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

func TestACallerWhoseAnswerWasLostCanAskAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx := open(t, r), t.Context()
		for mode, q := range map[string]lock.Request{
			"exclusive": {Name: redistest.Name("x"), Mode: lock.Exclusive},
			"shared":    {Name: redistest.Name("s"), Mode: lock.Shared},
			"semaphore": {Name: redistest.Name("sem"), Kind: lock.Semaphore, Capacity: 1},
		} {
			q = request(t, q)
			first, err := l.Acquire(ctx, q)
			require.NoError(t, err, mode)
			require.False(t, first.Reacquired)
			q.TTL = 2 * ttl
			again, err := l.Acquire(ctx, q)
			require.NoError(t, err, mode)
			require.True(t, again.Reacquired, mode)
			require.Equal(t, first.Fence, again.Fence, "%s: the fence stays", mode)
			require.Equal(t, first.AcquiredAt, again.AcquiredAt)
			require.GreaterOrEqual(t, again.ExpiresAt-first.ExpiresAt, ttl.Milliseconds(),
				"the lease lasts the new ttl from now")
			require.EqualValues(t, 1, again.InUse)
		}
	})
}

func TestATokenThatHoldsNothingIsToldWhy(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx := open(t, r), t.Context()
		for mode, kind := range map[lock.Mode]lock.Kind{lock.Exclusive: lock.Lock, lock.Shared: lock.Semaphore} {
			name := redistest.Name("lock")
			lost, err := l.Acquire(ctx, request(t, lock.Request{Kind: kind, Name: name, Mode: mode, TTL: lock.MinTTL,
				Capacity: 1}))
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				s, err := l.Inspect(ctx, kind, name)
				return err == nil && !s.Held
			}, prompt, 5*time.Millisecond)

			_, err = l.Renew(ctx, kind, name, lost.Token, ttl)
			require.Equal(t, lock.Expired, refusal(t, err, fault.LockNotHeld).Extra["reason"],
				"a late renewal never takes it again")
			_, err = l.Release(ctx, kind, name, lost.Token)
			require.Equal(t, lock.Expired, refusal(t, err, fault.LockNotHeld).Extra["reason"])
			s, err := l.Inspect(ctx, kind, name)
			require.NoError(t, err)
			require.False(t, s.Held)
		}
		name := redistest.Name("lock")
		_, err := l.Acquire(ctx, request(t, lock.Request{Name: name}))
		require.NoError(t, err)
		_, err = l.Renew(ctx, lock.Lock, name, strings.Repeat("t", 16), ttl)
		require.Equal(t, lock.HeldByOther, refusal(t, err, fault.LockNotHeld).Extra["reason"])
		_, err = l.Release(ctx, lock.Lock, name, strings.Repeat("t", 16))
		require.Equal(t, lock.HeldByOther, refusal(t, err, fault.LockNotHeld).Extra["reason"])
	})
}

func TestTheFenceRisesWhenAllDataIsLost(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx, name := open(t, r), t.Context(), redistest.Name("lock")
		last := int64(0)
		for range 20 {
			lease, err := l.Acquire(ctx, request(t, lock.Request{Name: name}))
			require.NoError(t, err)
			require.Greater(t, lease.Fence, last)
			last = lease.Fence
			require.NoError(t, r.Client.Del(ctx, "{lock:"+name+"}").Err())
		}
	})
}

func TestASemaphoreHasAsManyHoldersAsPermits(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx, name := open(t, r), t.Context(), redistest.Name("sem")
		q := lock.Request{Kind: lock.Semaphore, Name: name, Capacity: 3}
		var first lock.Lease
		for i := range 3 {
			lease, err := l.Acquire(ctx, request(t, q))
			require.NoError(t, err)
			require.EqualValues(t, i+1, lease.InUse)
			if i == 0 {
				first = lease
			}
		}
		_, err := l.Acquire(ctx, request(t, q))
		_ = refusal(t, err, fault.LockHeld)
		_, err = l.Release(ctx, lock.Semaphore, name, first.Token)
		require.NoError(t, err)
		lease, err := l.Acquire(ctx, request(t, q))
		require.NoError(t, err)
		require.EqualValues(t, 3, lease.InUse)
		_, err = l.Acquire(ctx, request(t, lock.Request{Name: name}))
		require.NoError(t, err, "a lock of the same name is another thing")
	})
}

func TestAReleaseWakesTheWaitersInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx, name := open(t, r), t.Context(), redistest.Name("lock")
		holder, err := l.Acquire(ctx, request(t, lock.Request{Name: name, TTL: time.Minute}))
		require.NoError(t, err)
		const waiters = 5
		order := make(chan int, waiters)
		var wait sync.WaitGroup
		for i := range waiters {
			wait.Go(func() {
				lease, err := l.Acquire(ctx, request(t, lock.Request{Name: name, Wait: lock.MaxWait, TTL: time.Minute}))
				if err != nil {
					return
				}
				order <- i
				_, _ = l.Release(ctx, lock.Lock, name, lease.Token)
			})
			require.Eventually(t, func() bool {
				s, err := l.Inspect(ctx, lock.Lock, name)
				return err == nil && s.Waiters == int64(i+1)
			}, prompt, time.Millisecond)
		}
		_, err = l.Acquire(ctx, request(t, lock.Request{Name: name}))
		_ = refusal(t, err, fault.LockHeld)
		_, err = l.Release(ctx, lock.Lock, name, holder.Token)
		require.NoError(t, err)
		wait.Wait()
		close(order)
		var got []int
		for i := range order {
			got = append(got, i)
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, got)
	})
}

// Readers that keep coming would starve a writer, if they did not queue behind it.
func TestAWriterIsNotStarvedByAStreamOfReaders(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, name := open(t, r), redistest.Name("lock")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for ctx.Err() == nil {
					lease, err := l.Acquire(ctx, request(t, lock.Request{Name: name, Mode: lock.Shared,
						Wait: time.Second}))
					if err == nil {
						<-time.After(10 * time.Millisecond) // long enough that reads overlap
						_, _ = l.Release(context.WithoutCancel(ctx), lock.Lock, name, lease.Token)
					}
				}
			})
		}
		writer, err := l.Acquire(ctx, request(t, lock.Request{Name: name, Wait: lock.MaxWait}))
		require.NoError(t, err)
		require.Less(t, writer.Waited, 2*prompt)
		_, err = l.Release(ctx, lock.Lock, name, writer.Token)
		require.NoError(t, err)
		stop()
		wait.Wait()
	})
}

func TestEveryKeyHasATTL(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l, ctx := open(t, r), t.Context()
	for _, q := range []lock.Request{{Name: "a"}, {Name: "b", Mode: lock.Shared},
		{Name: "c", Kind: lock.Semaphore, Capacity: 1}} {
		q = request(t, q)
		_, err := l.Acquire(ctx, q)
		require.NoError(t, err)
		q.Token, q.Wait, q.Mode = "", 20*time.Millisecond, lock.Exclusive
		_, err = l.Acquire(ctx, request(t, q))
		_ = refusal(t, err, fault.LockHeld)
	}
	found, err := r.Client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, key := range found {
		remaining, err := r.Client.PTTL(ctx, key).Result()
		require.NoError(t, err)
		require.Positive(t, remaining, key)
	}
}
