package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
)

func TestAcquire(t *testing.T) {
	t.Parallel()
	t.Run("repeated with the token: returns the same lease", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
			for name, req := range map[string]lock.Request{
				"exclusive": {Mode: lock.Exclusive},
				"shared":    {Mode: lock.Shared},
				"semaphore": {Kind: lock.Semaphore, Capacity: 1},
			} {
				req.Name, req.Token, req.TTL = redistest.Name("lock"), newToken(), ttl
				first, err := s.Acquire(t.Context(), req)
				require.NoError(t, err, name)
				require.False(t, first.Reacquired)

				req.TTL = 2 * ttl
				again, err := s.Acquire(t.Context(), req)
				require.NoError(t, err, name)
				require.True(t, again.Reacquired, name)
				require.Equal(t, first.Fence, again.Fence, name)
				require.Equal(t, first.AcquiredAt, again.AcquiredAt)
				require.GreaterOrEqual(t, again.ExpiresAt.Sub(first.ExpiresAt), ttl,
					"the lease lasts the new TTL from now")
				require.EqualValues(t, 1, again.InUse)
			}
		})
	})

	t.Run("after a loss of all data: the fence rises", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, r *redistest.Redis, s *lock.Redis) {
			name, last := redistest.Name("lock"), int64(0)
			for range 20 {
				lease, err := s.Acquire(t.Context(), lock.Request{Name: name})
				require.NoError(t, err)
				require.Greater(t, lease.Fence, last)
				last = lease.Fence
				require.NoError(t, r.Client.Del(t.Context(), "{lock:"+name+"}").Err())
			}
		})
	})

	t.Run("semaphore: grants as many permits as its capacity", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
			req := lock.Request{Kind: lock.Semaphore, Name: redistest.Name("sem"), Capacity: 3}
			var leases []lock.Lease
			for i := range 3 {
				lease, err := s.Acquire(t.Context(), req)
				require.NoError(t, err)
				require.EqualValues(t, i+1, lease.InUse)
				leases = append(leases, lease)
			}
			_, err := s.Acquire(t.Context(), req)
			require.ErrorIs(t, err, lock.ErrHeld)

			_, err = s.Release(t.Context(), leases[0].Key, leases[0].Token)
			require.NoError(t, err)
			lease, err := s.Acquire(t.Context(), req)
			require.NoError(t, err)
			require.EqualValues(t, 3, lease.InUse)
			_, err = s.Acquire(t.Context(), lock.Request{Name: req.Name})
			require.NoError(t, err, "a lock of the same name is independent")
		})
	})
}

func TestRenewAndRelease(t *testing.T) {
	t.Parallel()
	t.Run("not held: reports why", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, _ *redistest.Redis, s *lock.Redis) {
			for _, req := range []lock.Request{{}, {Kind: lock.Semaphore, Capacity: 1}} {
				req.Name, req.TTL = redistest.Name("lock"), lock.MinTTL
				lost, err := s.Acquire(t.Context(), req)
				require.NoError(t, err)
				require.Eventually(t, func() bool {
					state, err := s.Inspect(t.Context(), lost.Key)
					return err == nil && !state.Held
				}, prompt, 5*time.Millisecond)

				_, err = s.Renew(t.Context(), lost.Key, lost.Token, ttl)
				locktest.RequireNotHeld(t, err, lock.Expired)
				_, err = s.Release(t.Context(), lost.Key, lost.Token)
				locktest.RequireNotHeld(t, err, lock.Expired)
				state, err := s.Inspect(t.Context(), lost.Key)
				require.NoError(t, err)
				require.False(t, state.Held, "a late Renew must not reacquire the lock")
			}

			held, err := s.Acquire(t.Context(), lock.Request{Name: redistest.Name("lock")})
			require.NoError(t, err)
			_, err = s.Renew(t.Context(), held.Key, newToken(), ttl)
			locktest.RequireNotHeld(t, err, lock.HeldByOther)
			_, err = s.Release(t.Context(), held.Key, newToken())
			locktest.RequireNotHeld(t, err, lock.HeldByOther)
		})
	})
}

func TestRedisKeys(t *testing.T) {
	t.Parallel()
	kinds := []lock.Request{
		{Name: "a"},
		{Name: "b", Mode: lock.Shared},
		{Name: "c", Kind: lock.Semaphore, Capacity: 1},
	}
	timeToLive := func(t *testing.T, r *redistest.Redis) map[string]time.Duration {
		t.Helper()
		keys, err := r.Client.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		require.NotEmpty(t, keys)
		left := make(map[string]time.Duration)
		for _, key := range keys {
			left[key], err = r.Client.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
		}
		return left
	}

	t.Run("held and with waiters: every key has a TTL", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := openStore(t, r)
		for _, req := range kinds {
			_, err := s.Acquire(t.Context(), req)
			require.NoError(t, err)
			req.Wait = 20 * time.Millisecond
			if req.Kind == "" {
				req.Mode = lock.Exclusive
			}
			_, err = s.Acquire(t.Context(), req)
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		for key, left := range timeToLive(t, r) {
			require.Positive(t, left, key)
		}
	})

	// In Redisson, fence counters never expire; a user found 25 million of them (redisson #6510).
	t.Run("released: every key ends within two minutes", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := openStore(t, r)
		for _, req := range kinds {
			lease, err := s.Acquire(t.Context(), req)
			require.NoError(t, err)
			_, err = s.Release(t.Context(), lease.Key, lease.Token)
			require.NoError(t, err)
		}
		for key, left := range timeToLive(t, r) {
			require.Positive(t, left, key)
			require.LessOrEqual(t, left, 2*time.Minute, key)
		}
	})
}

func TestScriptCalls(t *testing.T) {
	t.Parallel()
	t.Run("an uncontended lock: one call to acquire and one to release", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := openStore(t, r)
		acquireAndRelease := func() {
			lease, err := s.Acquire(t.Context(), lock.Request{Name: "report", Wait: time.Second})
			require.NoError(t, err)
			_, err = s.Release(t.Context(), lease.Key, lease.Token)
			require.NoError(t, err)
		}
		acquireAndRelease() // loads the scripts
		require.NoError(t, r.Client.ConfigResetStat(t.Context()).Err())
		acquireAndRelease()
		stats, err := r.Client.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		require.Contains(t, stats, "cmdstat_evalsha:calls=2,")
		require.NotContains(t, stats, "cmdstat_eval:")
	})
}
