package ratelimit

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// exhaustThree charges all 3 units of a key and returns the denial of the next check.
func exhaustThree(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	all := c
	all.Cost = 3
	require.True(t, check(t, l, all).Allowed)
	d := check(t, l, c)
	require.False(t, d.Allowed)
	return d
}

// scriptCalls returns the number of script calls that Redis receives while do runs.
func scriptCalls(t *testing.T, r *redistest.Redis, do func()) int {
	t.Helper()
	before := commands(t, r, "evalsha")
	do()
	return commands(t, r, "evalsha") - before
}

func isCached(l *Limiter, check Check) bool {
	c := check.charge()
	_, cached := l.cachedDenial(&c)
	return cached
}

func TestDenyCache(t *testing.T) {
	t.Parallel()

	t.Run("denied key: later checks are answered from memory", func(t *testing.T) {
		t.Parallel()
		for _, algorithm := range algorithms() {
			t.Run(string(algorithm), func(t *testing.T) {
				t.Parallel()
				r := redistest.Single(t)
				l := open(t, r)
				c := cached(newCheck("k", 1, newRule(algorithm, 3, hour)))
				first := exhaustThree(t, l, c)
				require.Zero(t, scriptCalls(t, r, func() {
					for range 100 {
						d := check(t, l, c)
						require.False(t, d.Allowed)
						require.Equal(t, "r", d.Violated)
						require.Equal(t, first.Remaining, d.Remaining)
						require.LessOrEqual(t, d.RetryAfter, first.RetryAfter)
						require.Positive(t, d.RetryAfter)
					}
				}))
			})
		}
	})

	t.Run("times: count down until the denial ends", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		now := time.Now()
		l.denied.now = func() time.Time { return now }
		c := cached(newCheck("k", 1, newRule(policy.SlidingWindow, 3, hour)))
		first := exhaustThree(t, l, c)

		now = now.Add(10 * time.Minute)
		later := check(t, l, c)
		require.InDelta(t, first.RetryAfter-10*minute, later.RetryAfter, float64(5*second))
		require.InDelta(t, first.ResetAfter-10*minute, later.ResetAfter, float64(5*second))
		require.Equal(t, later.RetryAfter, later.Rules[0].RetryAfter)
		require.True(t, isCached(l, c))

		now = now.Add(50*time.Minute + time.Second)
		require.False(t, isCached(l, c), "after the retry time, the check goes to Redis again")
	})

	t.Run("smaller cost: goes to Redis", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		r := newRule(policy.SlidingWindow, 3, hour)
		require.True(t, check(t, l, cached(newCheck("k", 1, r))).Allowed)
		require.False(t, check(t, l, cached(newCheck("k", 3, r))).Allowed)
		require.False(t, check(t, l, cached(newCheck("k", 3, r))).Allowed)
		require.True(t, check(t, l, cached(newCheck("k", 2, r))).Allowed, "two units are left")
	})

	t.Run("refund, reset or change of policy: removes the denial", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		here, there := open(t, r), open(t, r)
		rule := newRule(policy.SlidingWindow, 3, hour)
		for name, change := range map[string]func(*testing.T, Check) Check{
			"a refund": func(t *testing.T, c Check) Check {
				refund(t, here, c)
				return c
			},
			"a reset": func(t *testing.T, c Check) Check {
				require.NoError(t, here.Reset(t.Context(), c))
				return c
			},
			"a refund by another instance": func(t *testing.T, c Check) Check {
				refund(t, there, c)
				return c
			},
			"a reset by another instance": func(t *testing.T, c Check) Check {
				require.NoError(t, there.Reset(t.Context(), c))
				return c
			},
			"a raised limit": func(_ *testing.T, c Check) Check {
				return under(c, newRule(policy.SlidingWindow, 4, hour))
			},
			"a different mode": func(_ *testing.T, c Check) Check {
				c.Policy.Mode = policy.Shadow
				return c
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := cached(newCheck(name+" %{*}/", 1, rule))
				exhaustThree(t, here, c)
				c = change(t, c)
				require.Eventually(t, func() bool { return check(t, here, c).Allowed }, 10*time.Second,
					time.Millisecond)
			})
		}
	})

	t.Run("no_deny_cache: every check goes to Redis", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		c := newCheck("k", 1, newRule(policy.GCRA, 3, hour))
		exhaustThree(t, l, c)
		require.Equal(t, 10, scriptCalls(t, r, func() {
			for range 10 {
				require.False(t, check(t, l, c).Allowed)
			}
		}))
	})

	t.Run("cost over the capacity: is not cached", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		for range 3 {
			d := check(t, l, cached(newCheck("k", 4, newRule(policy.GCRA, 3, hour))))
			require.False(t, d.Allowed)
			require.Equal(t, Never, d.RetryAfter)
		}
	})

	t.Run("size: is bounded", func(t *testing.T) {
		t.Parallel()
		now := time.Unix(1_750_000_000, 0)
		d := newDenyCache(func() time.Time { return now })
		d.setSubscribed(true)
		remember := func(key string, cost int64) {
			check := cached(newCheck(key, cost, newRule(policy.GCRA, 1000, hour)))
			c := check.charge()
			d.remember(&c, Decision{RetryAfter: hour}, now)
		}

		for i := range maxDenied + 1000 {
			remember(strconv.Itoa(i), 1)
		}
		require.LessOrEqual(t, len(d.entries), maxDenied)
		require.Greater(t, len(d.entries), maxDenied/2)
		for cost := range int64(100) {
			remember("0", cost+1)
		}
		require.Len(t, d.entries[denyKey{"p", "0"}], maxCosts)

		now = now.Add(2 * time.Hour)
		d.evict()
		require.Empty(t, d.entries, "entries whose denials have ended are evicted")
	})

	t.Run("broken subscription: clears the cache until a new subscription works", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		c := cached(newCheck("k", 1, newRule(policy.GCRA, 3, hour)))
		exhaustThree(t, l, c)

		require.NoError(t, r.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
		require.Eventually(t, func() bool {
			l.denied.mu.Lock()
			defer l.denied.mu.Unlock()
			return len(l.denied.entries) == 0
		}, 10*time.Second, time.Millisecond)
		require.Eventually(t, func() bool {
			check(t, l, c)
			return isCached(l, c)
		}, 10*time.Second, 10*time.Millisecond)
	})

	t.Run("silent subscription: is detected", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		c := cached(newCheck("k", 1, newRule(policy.GCRA, 3, hour)))
		exhaustThree(t, l, c)
		require.NoError(t, r.Server.Pause())
		defer func() { _ = r.Server.Resume() }()
		require.Eventually(t, func() bool { return !isCached(l, c) }, 4*maxSilence, 10*time.Millisecond)
	})
}
