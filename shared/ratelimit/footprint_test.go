package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// stateKeyOf returns the Redis key of a check's state.
func stateKeyOf(c Check) string { return stateKey(c.charge()) }

// redisKeysOf returns the Redis keys of a check's state and rings.
func redisKeysOf(c Check) []string {
	keys := []string{stateKeyOf(c)}
	for _, rule := range c.Policy.Rules {
		if rule.Algorithm == policy.SlidingWindow {
			keys = append(keys, ringKey(c.charge(), rule.Name))
		}
	}
	return keys
}

// memoryOf returns the memory of a check's keys in bytes, including the overhead of Redis.
func memoryOf(t *testing.T, r *redistest.Redis, c Check) (bytes int64) {
	t.Helper()
	for _, key := range redisKeysOf(c) {
		n, err := r.Client.MemoryUsage(t.Context(), key, 0).Result()
		require.NoError(t, err)
		bytes += n
	}
	return bytes
}

func TestExpiry(t *testing.T) {
	t.Parallel()

	t.Run("every key: expires when its charges no longer count", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		for _, algorithm := range algorithms() {
			rule := newRule(algorithm, 10, 10*second)
			for _, cost := range []int64{1, 10} {
				require.True(t, check(t, l, newCheck(fmt.Sprint(algorithm, cost), cost, rule)).Allowed)
			}
			require.EqualValues(t, 3, refund(t, l, newCheck(fmt.Sprint(algorithm, 10), 3, rule)).Remaining)
			for n := range 3 { // windows so short that a TTL could be rounded to 0
				window := time.Duration(n+1) * time.Millisecond
				check(t, l, newCheck(fmt.Sprint(algorithm, "short"), 1, newRule(algorithm, 1000, window)))
			}
		}

		keys := keysOf(t, r)
		for _, key := range keys {
			remaining, err := r.Client.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			require.NotEqual(t, time.Duration(-1), remaining, "%s has no TTL", key)
			require.LessOrEqual(t, remaining, 20*time.Second, key)
		}
		require.GreaterOrEqual(t, len(keys), 2*len(algorithms())+1)

		c := newCheck("sliding_window10", 10, newRule(policy.SlidingWindow, 10, 10*second))
		refund(t, l, c)
		require.NotContains(t, keysOf(t, r), stateKeyOf(c), "a key that is full again is deleted immediately")
	})

	// decide/fast.lua renews the TTL of a sliding_window rule's keys only once in each quarter of
	// the window.
	t.Run("sliding_window: charges are kept for a whole window", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		const window = 400 * time.Millisecond
		c := newCheck("log", 1, newRule(policy.SlidingWindow, 1000, window))
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test needs a fixed seed
		for range 120 {
			<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
			if random.IntN(6) == 0 {
				refund(t, l, c)
			}
			started := time.Now()
			require.True(t, check(t, l, c).Allowed)
			for _, key := range redisKeysOf(c) {
				left, err := r.Client.PTTL(t.Context(), key).Result()
				require.NoError(t, err)
				require.Positive(t, left, key)
				require.GreaterOrEqual(t, left+time.Since(started), window-2*time.Millisecond, key)
			}
		}
	})
}

func TestRing(t *testing.T) {
	t.Parallel()

	t.Run("memory: at most 16 bytes for each charge", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := clockedRedis(r, start)
		for _, limit := range []int64{150, 1000, 20_000} {
			c := newCheck(fmt.Sprint(limit), 1, newRule(policy.SlidingWindow, limit, hour))
			worst := 0.0
			for n := int64(1); n <= limit; n++ {
				require.True(t, s.allows(t, n, c))
				if n >= 150 && (n%7 == 0 || n == limit) { // with fewer charges the overhead of the keys dominates
					worst = max(worst, float64(memoryOf(t, r, c))/float64(n))
				}
			}
			t.Logf("limit %d: at most %.1f B for each charge, %.1f when full", limit, worst,
				float64(memoryOf(t, r, c))/float64(limit))
			require.LessOrEqual(t, worst, 16.0, "limit %d", limit)
		}
	})

	t.Run("memory: depends on the charges, not on the cost or the limit", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := clockedRedis(r, start)
		c := newCheck("k", MaxCost, newRule(policy.SlidingWindow, policy.MaxExactLimit, hour))
		for range 10 {
			require.True(t, s.allows(t, 0, c))
		}
		require.LessOrEqual(t, memoryOf(t, r, c), int64(600))
	})

	t.Run("grown ring: every entry expires at its own time", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		const charged = int64(100)
		c := newCheck("k", 1, newRule(policy.SlidingWindow, 200, minute))
		for n := range charged {
			require.True(t, s.allows(t, n*1000, c))
		}
		for n := range charged {
			expires := micros(minute) + n*1000
			require.Equal(t, 200-charged+n, s.do(t, expires-1, opPeek, c).rules[0].remaining,
				"before entry %d expires", n)
			require.Equal(t, 200-charged+n+1, s.do(t, expires, opPeek, c).rules[0].remaining,
				"when entry %d expires", n)
		}
	})

	t.Run("less traffic: shrinks the ring", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := clockedRedis(r, start)
		c := newCheck("k", 1, newRule(policy.SlidingWindow, 2000, minute))
		for n := range int64(2000) {
			require.True(t, s.allows(t, n, c))
		}
		busy := memoryOf(t, r, c)
		for n := range int64(100) {
			require.True(t, s.allows(t, (n+11)*micros(minute)/10, c))
		}
		require.Less(t, memoryOf(t, r, c), busy/10)
	})
}

func TestScriptCalls(t *testing.T) {
	t.Parallel()

	t.Run("any number of rules and checks: one call", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		bucket := newRule(policy.GCRA, 10, hour)
		check(t, l, newCheck("first", 1, bucket))
		check(t, l, newCheck("first", 1, bucket, named("second", bucket)))
		check(t, l, newCheck("first", 1, newRule(policy.FixedWindow, 10, hour)))
		require.Equal(t, 3, commands(t, r, "eval"), "only the first call of each script sends its text")

		for rules := 1; rules <= policy.MaxRules; rules++ {
			c := newCheck("k", 1)
			for i := range rules {
				c.Policy.Rules = append(c.Policy.Rules,
					named(fmt.Sprintf("r%d", i), newRule(algorithms()[i%5], 1000, hour)))
			}
			require.Equal(t, 1, scriptCalls(t, r, func() { check(t, l, c) }), "%d rules", rules)

			many := make([]Check, MaxChecks)
			for i := range many {
				many[i] = c
				many[i].Key = fmt.Sprint(i)
			}
			require.Equal(t, 1, scriptCalls(t, r, func() {
				_, allowed, err := l.CheckAll(t.Context(), many)
				require.NoError(t, err)
				require.True(t, allowed)
			}), "%d checks of %d rules", MaxChecks, rules)
		}
		require.Equal(t, 3, commands(t, r, "eval"))
	})

	// Redis loses its scripts in a restart or a failover.
	t.Run("script lost by Redis: is sent again", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		c := newCheck("k", 1, newRule(policy.GCRA, 10, hour))
		for want := int64(9); want > 5; want-- {
			require.NoError(t, r.Client.ScriptFlush(t.Context()).Err())
			d := check(t, l, c)
			require.False(t, d.Degraded)
			require.Equal(t, want, d.Remaining)
		}
	})
}
