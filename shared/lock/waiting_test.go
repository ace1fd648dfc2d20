package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// A process that died while it waited is first in the queue, and nobody hears of it any more.
func TestAWaiterThatDiedIsPassedOverWithinItsHeartbeat(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx, name := open(t, r), t.Context(), redistest.Name("lock")
		holder, err := l.Acquire(ctx, request(t, lock.Request{Name: name, TTL: time.Minute}))
		require.NoError(t, err)
		base := "{lock:" + name + "}"
		beat := time.Now().Add(time.Second)
		require.NoError(t, r.Client.ZAdd(ctx, base+":queue", redis.Z{Score: 1, Member: "dead"}).Err())
		require.NoError(t, r.Client.ZAdd(ctx, base+":beats",
			redis.Z{Score: float64(beat.UnixMicro()), Member: "dead"}).Err())
		require.NoError(t, r.Client.SetRange(ctx, base, 0, "1").Err())
		_, err = l.Release(ctx, lock.Lock, name, holder.Token)
		require.NoError(t, err)

		_, err = l.Acquire(ctx, request(t, lock.Request{Name: name}))
		f := refusal(t, err, fault.LockHeld)
		require.Contains(t, f.Detail, "kept for those who already wait")
		next, err := l.Acquire(ctx, request(t, lock.Request{Name: name, Wait: lock.MaxWait}))
		require.NoError(t, err)
		require.GreaterOrEqual(t, next.AcquiredAt, beat.UnixMilli())
		require.Less(t, next.Waited, prompt)
	})
}

// blnk released on the request's context, which had ended: the key stayed until its TTL.
func TestACallerWhoseRequestEndsLeavesNothingBehindAndTheNextIsWoken(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, name := open(t, r), redistest.Name("lock")
		holder, err := l.Acquire(t.Context(), request(t, lock.Request{Name: name, TTL: time.Minute}))
		require.NoError(t, err)
		waits := func(n int64) func() bool {
			return func() bool {
				s, err := l.Inspect(t.Context(), lock.Lock, name)
				return err == nil && s.Waiters == n
			}
		}
		gone, leave := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		first, second := request(t, lock.Request{Name: name, Wait: lock.MaxWait}),
			request(t, lock.Request{Name: name, Wait: lock.MaxWait})
		go func() {
			_, err := l.Acquire(gone, first)
			ended <- err
		}()
		require.Eventually(t, waits(1), prompt, time.Millisecond)
		got := make(chan lock.Lease, 1)
		go func() {
			lease, _ := l.Acquire(t.Context(), second)
			got <- lease
		}()
		require.Eventually(t, waits(2), prompt, time.Millisecond)
		leave()
		err = <-ended
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, fault.New(fault.LockHeld, ""), "and why it had to wait can be seen too")
		require.Eventually(t, waits(1), prompt, time.Millisecond)
		_, err = l.Release(t.Context(), lock.Lock, name, holder.Token)
		require.NoError(t, err)
		require.Less(t, (<-got).Waited, prompt)
	})
}

// go-redis ignores a context's deadline unless it is told not to; and when it obeys, what the
// script did stays.
func TestACallWhoseDeadlinePassedHoldsNothingAfterwards(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	_, err := l.Acquire(t.Context(), request(t, lock.Request{Name: redistest.Name("warm")})) // the scripts are loaded
	require.NoError(t, err)
	// The server must go on while the clean-up still tries, which a busy machine may miss now and
	// then.
	for range 10 {
		name := redistest.Name("lock")
		require.NoError(t, r.Server.Pause())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		started := time.Now()
		time.AfterFunc(60*time.Millisecond, func() {
			_ = r.Server.Resume()
		}) // the server then carries out what it was sent
		_, err = l.Acquire(ctx, request(t, lock.Request{Name: name, TTL: time.Minute}))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "never a success after the deadline")
		require.Less(t, time.Since(started), 500*time.Millisecond)
		require.NoError(t, r.Server.Resume())
		s, err := l.Inspect(t.Context(), lock.Lock, name)
		require.NoError(t, err)
		if !s.Held {
			return
		}
	}
	require.Fail(t, "what the call got was never given back")
}

// A clean-up that comes late must not take away what the same token got with another call
// meanwhile.
func TestACleanUpGivesBackOnlyWhatItsOwnCallGot(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l, ctx, name := open(t, r), t.Context(), redistest.Name("lock")
		q := request(t, lock.Request{Name: name, TTL: time.Minute})
		first, err := l.Acquire(ctx, q)
		require.NoError(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = l.Acquire(ended, q) // the same token asks again, gives up, and cleans up
		require.ErrorIs(t, err, context.Canceled)
		renewed, err := l.Renew(ctx, lock.Lock, name, q.Token, time.Minute)
		require.NoError(t, err)
		require.Equal(t, first.Fence, renewed.Fence)
	})
}

// redisson's fence counters never expired: 25 million of them.
func TestTheFenceNeedsNoImmortalKey(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l, ctx := open(t, r), t.Context()
	for _, q := range []lock.Request{{Name: "x"}, {Name: "s", Mode: lock.Shared},
		{Name: "p", Kind: lock.Semaphore, Capacity: 2}} {
		lease, err := l.Acquire(ctx, locktest.Request(t, q))
		require.NoError(t, err)
		kind := lock.Lock
		if q.Kind != "" {
			kind = q.Kind
		}
		_, err = l.Release(ctx, kind, q.Name, lease.Token)
		require.NoError(t, err)
	}
	keys, err := r.Client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, k := range keys {
		left, err := r.Client.PTTL(ctx, k).Result()
		require.NoError(t, err)
		require.Positive(t, left, k)
		require.LessOrEqual(t, left, 2*time.Minute, "%s is gone soon", k)
	}
}

func TestAnUncontendedLockIsOneCallEachWay(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l, ctx := open(t, r), t.Context()
	once := func() {
		lease, err := l.Acquire(ctx, request(t, lock.Request{Name: "report", Wait: time.Second}))
		require.NoError(t, err)
		_, err = l.Release(ctx, lock.Lock, "report", lease.Token)
		require.NoError(t, err)
	}
	once() // the scripts are loaded
	require.NoError(t, r.Client.ConfigResetStat(ctx).Err())
	once()
	stats, err := r.Client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	require.Contains(t, stats, "cmdstat_evalsha:calls=2,")
	require.NotContains(t, stats, "cmdstat_eval:")
}
