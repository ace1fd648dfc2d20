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

// shelf is a store whose policy, failure and slowness a test sets.
type shelf struct {
	asked atomic.Int64

	mu     sync.Mutex
	stored policy.Stored
	err    error
	slow   time.Duration
}

func (s *shelf) set(version int64, err error, slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored, s.err, s.slow = policy.Stored{Policy: valid(), Version: version}, err, slow
}

func (s *shelf) Get(ctx context.Context, _ string) (policy.Stored, error) {
	s.asked.Add(1)
	s.mu.Lock()
	stored, err, slow := s.stored, s.err, s.slow
	s.mu.Unlock()
	select {
	case <-time.After(slow):
		return stored, err
	case <-ctx.Done():
		return policy.Stored{}, ctx.Err()
	}
}

var (
	errAway   = fault.Unavailable("policy", errors.New("no route to host"))
	errAbsent = fault.New(fault.PolicyNotFound, "there is no such policy")
)

// shelved is a cache with the defaults, in front of a store that holds version 1.
func shelved() (*policy.Cache, *shelf) {
	s := &shelf{}
	s.set(1, nil, 0)
	return policy.NewCache(s, policy.CacheConfig{}), s
}

func version(t *testing.T, c *policy.Cache) int64 {
	t.Helper()
	p, err := c.Get(t.Context(), "login")
	require.NoError(t, err)
	return p.Version
}

func TestAChangeIsInForceWithinFiveSecondsAndAskedForSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		for range 100 {
			require.EqualValues(t, 1, version(t, c))
		}
		require.EqualValues(t, 1, s.asked.Load(), "once for many calls")
		s.set(2, nil, 0)
		changed := time.Now()
		for version(t, c) != 2 {
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, time.Since(changed), 5*time.Second)
		require.EqualValues(t, 2, s.asked.Load())
	})
}

func TestAPolicyThatAppearsIsSeenWithinASecondOrTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		s.set(0, errAbsent, 0)
		for range 100 {
			_, err := c.Get(t.Context(), "login")
			require.Equal(t, fault.PolicyNotFound, fault.CodeOf(err))
		}
		require.EqualValues(t, 1, s.asked.Load(), "a stranger's name does not reach the store each time")
		s.set(1, nil, 0)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, version(t, c))
	})
}

func TestADeletedPolicyIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		require.EqualValues(t, 1, version(t, c))
		s.set(0, errAbsent, 0)
		time.Sleep(5 * time.Second)
		_, err := c.Get(t.Context(), "login")
		require.Equal(t, fault.PolicyNotFound, fault.CodeOf(err))
		s.set(0, errAway, 0)
		time.Sleep(5 * time.Second)
		_, err = c.Get(t.Context(), "login")
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err),
			"what was deleted does not come back while the store is away")
	})
}

func TestTheLastKnownPolicyWorksWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		require.EqualValues(t, 1, version(t, c))
		s.set(2, errAway, 0)
		for range 3600 { // an hour
			time.Sleep(time.Second)
			require.EqualValues(t, 1, version(t, c))
		}
		time.Sleep(3 * time.Second)
		p, err := c.Get(t.Context(), "login")
		require.NoError(t, err)
		require.True(t, p.Stale, "and it says so")
		require.LessOrEqual(t, s.asked.Load(), int64(3601), "a dead store is not asked at each call")
		s.set(3, nil, 0)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 3, version(t, c))
		p, err = c.Get(t.Context(), "login")
		require.NoError(t, err)
		require.False(t, p.Stale)
	})
}

func TestAPolicyThatWasNeverSeenIsUnavailableWhileTheStoreIs(t *testing.T) {
	t.Parallel()
	c, s := shelved()
	s.set(0, errAway, 0)
	_, err := c.Get(t.Context(), "login")
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err))
}

func TestAHungStoreHoldsNobodyUpWhoKnowsThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		require.EqualValues(t, 1, version(t, c))
		s.set(2, errAway, 2*time.Second)
		time.Sleep(10 * time.Second)
		started := time.Now()
		require.EqualValues(t, 1, version(t, c))
		require.LessOrEqual(t, time.Since(started), 100*time.Millisecond)
		started = time.Now()
		require.EqualValues(t, 1, version(t, c))
		require.Zero(t, time.Since(started), "only the first one waits")
		s.set(3, nil, 500*time.Millisecond) // slow, but answering
		time.Sleep(4 * time.Second)
		require.EqualValues(t, 1, version(t, c))
		time.Sleep(500 * time.Millisecond)
		require.EqualValues(t, 3, version(t, c), "a late answer counts")
	})
}

func TestManyCallersShareOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
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
		require.EqualValues(t, 1, s.asked.Load())
	})
}

func TestACallerThatGivesUpSpoilsNobodysFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		s.set(1, nil, time.Second)
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var wait sync.WaitGroup
		wait.Go(func() {
			_, err := c.Get(impatient, "login")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		require.EqualValues(t, 1, version(t, c), "one fetch serves both")
		wait.Wait()
		require.EqualValues(t, 1, s.asked.Load())
	})
}

func TestWhoChangesAPolicySeesTheChangeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		require.EqualValues(t, 1, version(t, c))
		s.set(2, nil, 0)
		c.Forget("login")
		require.EqualValues(t, 2, version(t, c))
	})
}

func TestAFetchThatBeganBeforeAChangeDoesNotHideIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := shelved()
		s.set(1, nil, 100*time.Millisecond)
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = c.Get(t.Context(), "login") })
		time.Sleep(50 * time.Millisecond)
		s.set(2, nil, 0)
		c.Forget("login")
		wait.Wait()
		require.EqualValues(t, 2, version(t, c))
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.set(1, nil, 0)
	c := policy.NewCache(s, policy.CacheConfig{MaxEntries: 2})
	for range 2 {
		for _, name := range []string{"a", "b", "c"} {
			_, err := c.Get(t.Context(), name)
			require.NoError(t, err)
		}
	}
	require.Greater(t, s.asked.Load(), int64(3), "three do not fit into two")
}
