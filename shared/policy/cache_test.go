package policy_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// fakeStore is a store with a policy, an error and a latency that the test sets.
type fakeStore struct {
	reads atomic.Int64

	mu      sync.Mutex
	stored  policy.Stored
	err     error
	latency time.Duration
}

func (s *fakeStore) set(version int64, err error, latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored, s.err, s.latency = policy.Stored{Policy: valid(), Version: version}, err, latency
}

func (s *fakeStore) Get(ctx context.Context, _ string) (policy.Stored, error) {
	s.reads.Add(1)
	s.mu.Lock()
	stored, err, latency := s.stored, s.err, s.latency
	s.mu.Unlock()
	select {
	case <-time.After(latency):
		return stored, err
	case <-ctx.Done():
		return policy.Stored{}, ctx.Err()
	}
}

var (
	errUnavailable = fault.Unavailable("policy", errors.New("no route to host"))
	errNotFound    = fault.New(fault.PolicyNotFound, "no policy has this name")
)

// newCache returns a cache with the default configuration. Its store holds version 1 of a policy.
func newCache() (*policy.Cache, *fakeStore) {
	s := &fakeStore{}
	s.set(1, nil, 0)
	return policy.NewCache(s, policy.CacheConfig{}), s
}

func version(t *testing.T, c *policy.Cache) int64 {
	t.Helper()
	p, err := c.Get(t.Context(), "login")
	require.NoError(t, err)
	return p.Version
}

func TestCacheGet(t *testing.T) {
	t.Parallel()
	t.Run("changed policy: is returned within 5 s, with few reads", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			for range 100 {
				require.EqualValues(t, 1, version(t, c))
			}
			require.EqualValues(t, 1, s.reads.Load(), "one read for many calls")
			s.set(2, nil, 0)
			changed := time.Now()
			for version(t, c) != 2 {
				time.Sleep(10 * time.Millisecond)
			}
			require.Less(t, time.Since(changed), 5*time.Second)
			require.EqualValues(t, 2, s.reads.Load())
		})
	})

	t.Run("created policy: is returned within 2 s", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			s.set(0, errNotFound, 0)
			for range 100 {
				_, err := c.Get(t.Context(), "login")
				require.ErrorIs(t, err, policy.ErrNotFound)
			}
			require.EqualValues(t, 1, s.reads.Load(), "an absent policy is not read on every call")
			s.set(1, nil, 0)
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 1, version(t, c))
		})
	})

	t.Run("deleted policy: is never returned, even while the store is unavailable", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			require.EqualValues(t, 1, version(t, c))
			s.set(0, errNotFound, 0)
			time.Sleep(5 * time.Second)
			_, err := c.Get(t.Context(), "login")
			require.ErrorIs(t, err, policy.ErrNotFound)
			s.set(0, errUnavailable, 0)
			time.Sleep(5 * time.Second)
			_, err = c.Get(t.Context(), "login")
			require.ErrorIs(t, err, policy.ErrUnavailable, "the deleted policy must not be used again")
		})
	})

	t.Run("unavailable store: the last version is returned as stale", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			require.EqualValues(t, 1, version(t, c))
			s.set(2, errUnavailable, 0)
			for range 3600 { // an hour
				time.Sleep(time.Second)
				require.EqualValues(t, 1, version(t, c))
			}
			time.Sleep(3 * time.Second)
			p, err := c.Get(t.Context(), "login")
			require.NoError(t, err)
			require.True(t, p.Stale)
			require.LessOrEqual(t, s.reads.Load(), int64(3601), "an unavailable store is not read on every call")
			s.set(3, nil, 0)
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 3, version(t, c))
			p, err = c.Get(t.Context(), "login")
			require.NoError(t, err)
			require.False(t, p.Stale)
		})
	})

	t.Run("unavailable store: a policy that was never read is an error", func(t *testing.T) {
		t.Parallel()
		c, s := newCache()
		s.set(0, errUnavailable, 0)
		_, err := c.Get(t.Context(), "login")
		require.ErrorIs(t, err, policy.ErrUnavailable)
	})

	t.Run("slow store: delays one call by at most 100 ms", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			require.EqualValues(t, 1, version(t, c))
			s.set(2, errUnavailable, 2*time.Second)
			time.Sleep(10 * time.Second)
			started := time.Now()
			require.EqualValues(t, 1, version(t, c))
			require.LessOrEqual(t, time.Since(started), 100*time.Millisecond)
			started = time.Now()
			require.EqualValues(t, 1, version(t, c))
			require.Zero(t, time.Since(started), "only the first call waits")
			s.set(3, nil, 500*time.Millisecond) // slow, but answering
			time.Sleep(4 * time.Second)
			require.EqualValues(t, 1, version(t, c))
			time.Sleep(500 * time.Millisecond)
			require.EqualValues(t, 3, version(t, c), "a late answer is used")
		})
	})

	t.Run("concurrent callers: share one read", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			s.set(1, nil, 50*time.Millisecond)
			var wait sync.WaitGroup
			for range 64 {
				wait.Go(func() {
					p, err := c.Get(t.Context(), "login")
					if err != nil || p.Version != 1 {
						t.Errorf("got version %d and %v", p.Version, err)
					}
				})
			}
			wait.Wait()
			require.EqualValues(t, 1, s.reads.Load())
		})
	})

	t.Run("canceled caller: does not cancel the read of others", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			s.set(1, nil, time.Second)
			hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			var wait sync.WaitGroup
			wait.Go(func() {
				_, err := c.Get(hurried, "login")
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
			require.EqualValues(t, 1, version(t, c), "one read serves both callers")
			wait.Wait()
			require.EqualValues(t, 1, s.reads.Load())
		})
	})

	t.Run("size: is bounded", func(t *testing.T) {
		t.Parallel()
		s := &fakeStore{}
		s.set(1, nil, 0)
		c := policy.NewCache(s, policy.CacheConfig{MaxEntries: 2})
		for range 2 {
			for _, name := range []string{"a", "b", "c"} {
				_, err := c.Get(t.Context(), name)
				require.NoError(t, err)
			}
		}
		require.Greater(t, s.reads.Load(), int64(3), "three policies do not fit into two entries")
	})
}

func TestCacheInvalidate(t *testing.T) {
	t.Parallel()
	t.Run("the next call reads the store", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			require.EqualValues(t, 1, version(t, c))
			s.set(2, nil, 0)
			c.Invalidate("login")
			require.EqualValues(t, 2, version(t, c))
		})
	})

	t.Run("an earlier read that ends later does not restore the old version", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, s := newCache()
			s.set(1, nil, 100*time.Millisecond)
			var wait sync.WaitGroup
			wait.Go(func() { _, _ = c.Get(t.Context(), "login") })
			time.Sleep(50 * time.Millisecond)
			s.set(2, nil, 0)
			c.Invalidate("login")
			wait.Wait()
			require.EqualValues(t, 2, version(t, c))
		})
	})
}
