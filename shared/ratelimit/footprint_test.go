package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

func TestEveryKeyHasATTLThatEndsWhenItIsFull(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	for _, algorithm := range algorithms() {
		for _, cost := range []int64{1, 10} {
			require.True(t, ask(t, l, newCheck(fmt.Sprint(algorithm, cost), cost,
				newRule(algorithm, 10, 10_000))).Allowed)
		}
		d, err := l.Refund(t.Context(), newCheck(fmt.Sprint(algorithm, 10), 3, newRule(algorithm, 10, 10_000)))
		require.NoError(t, err)
		require.EqualValues(t, 3, d.Remaining)
		for windowMS := range int64(3) { // windows so short that a TTL may round to nothing
			ask(t, l, newCheck(fmt.Sprint(algorithm, "short"), 1, newRule(algorithm, 1000, windowMS+1)))
		}
	}
	for _, key := range keysOf(t, r) {
		remaining, err := r.Client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.NotEqual(t, time.Duration(-1), remaining, "%s has no TTL", key)
		require.LessOrEqual(t, remaining, 20*time.Second, key)
	}
	full := keysOf(t, r)
	require.GreaterOrEqual(t, len(full), 2*len(algorithms())+1)
	_, err := l.Refund(t.Context(), newCheck("sliding_window10", 10, newRule(policy.SlidingWindow, 10, 10_000)))
	require.NoError(t, err)
	require.NotContains(t, keysOf(t, r), stateKey(newCheck("sliding_window10", 1)),
		"a key that is full again is gone at once")
}

// memory is what the keys of a check take, in bytes, all told.
func memory(t *testing.T, r *redistest.Redis, c Check) (bytes int64) {
	t.Helper()
	keys := []string{stateKey(c)}
	for _, rule := range c.Rules {
		if rule.Algorithm == policy.SlidingWindow {
			keys = append(keys, ringKey(c, rule.Name))
		}
	}
	for _, key := range keys {
		n, err := r.Client.MemoryUsage(t.Context(), key, 0).Result()
		require.NoError(t, err)
		bytes += n
	}
	return bytes
}

func TestAnExactWindowTakesAtMost16BytesForEachAdmittedUnit(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	e := clockedRedis(r, start)
	for _, limit := range []int64{150, 1000, 20_000} {
		c := newCheck(fmt.Sprint(limit), 1, newRule(policy.SlidingWindow, limit, hour))
		worst := 0.0
		for n := int64(1); n <= limit; n++ {
			require.True(t, e.allows(t, n, c))
			if n >= 150 && (n%7 == 0 || n == limit) { // below, the keys themselves weigh more than what is in them
				worst = max(worst, float64(memory(t, r, c))/float64(n))
			}
		}
		t.Logf("limit %d: at most %.1f B for each unit, %.1f when full", limit, worst,
			float64(memory(t, r, c))/float64(limit))
		require.LessOrEqual(t, worst, 16.0, "limit %d", limit)
	}
}

// Units that are admitted together are one entry, and a limit that is hardly used takes hardly any
// room.
func TestAnExactWindowTakesRoomForWhatWasAdmittedNotForItsLimit(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	e := clockedRedis(r, start)
	c := newCheck("k", policy.MaxCost, newRule(policy.SlidingWindow, policy.MaxExactLimit, hour))
	for range 10 {
		require.True(t, e.allows(t, 0, c))
	}
	require.LessOrEqual(t, memory(t, r, c), int64(600))
}

// However a ring grew, each entry leaves at its own time.
func TestEveryEntryOfARingThatGrewLeavesAtItsTime(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	const admitted = int64(100)
	c := newCheck("k", 1, newRule(policy.SlidingWindow, 200, minute))
	for n := range admitted {
		require.True(t, e.allows(t, n*1000, c))
	}
	for n := range admitted {
		leaves := minute*1000 + n*1000
		require.Equal(t, 200-admitted+n, e.do(t, leaves-1, opPeek, c).rules[0].remaining, "before entry %d leaves", n)
		require.Equal(t, 200-admitted+n+1, e.do(t, leaves, opPeek, c).rules[0].remaining, "as entry %d leaves", n)
	}
}

// A key that was busy once gives its room back.
func TestARingShrinksWithItsUse(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	e := clockedRedis(r, start)
	c := newCheck("k", 1, newRule(policy.SlidingWindow, 2000, minute))
	for n := range int64(2000) {
		require.True(t, e.allows(t, n, c))
	}
	busy := memory(t, r, c)
	for n := range int64(100) {
		require.True(t, e.allows(t, (n+11)*minute*1000/10, c))
	}
	require.Less(t, memory(t, r, c), busy/10)
}

func TestACheckIsOneScriptCallForAnyNumberOfRules(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	ask(t, l, newCheck("first", 1, newRule(policy.GCRA, 10, hour)))
	ask(t, l, newCheck("first", 1, newRule(policy.GCRA, 10, hour), named("second", newRule(policy.GCRA, 10, hour))))
	ask(t, l, newCheck("first", 1, newRule(policy.FixedWindow, 10, hour)))
	require.Equal(t, 3, commands(t, r, "eval"), "only the first calls send the scripts")
	for rules := 1; rules <= policy.MaxRules; rules++ {
		c := newCheck("k", 1)
		for i := range rules {
			c.Rules = append(c.Rules, named(fmt.Sprintf("r%d", i), newRule(algorithms()[i%5], 1000, hour)))
		}
		require.Equal(t, 1, scripts(t, r, func() { ask(t, l, c) }), "%d rules", rules)
		many := make([]Check, 20)
		for i := range many {
			many[i] = c
			many[i].Key = fmt.Sprint(i)
		}
		require.Equal(t, 1, scripts(t, r, func() {
			_, allowed, err := l.Check(t.Context(), many)
			require.NoError(t, err)
			require.True(t, allowed)
		}), "20 checks of %d rules", rules)
	}
	require.Equal(t, 3, commands(t, r, "eval"))
}

// No peer's limiter survives it all: a restart and a failover forget the scripts.
func TestAScriptThatRedisForgotIsSentAgain(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	c := newCheck("k", 1, newRule(policy.GCRA, 10, hour))
	for want := int64(9); want > 5; want-- {
		require.NoError(t, r.Client.ScriptFlush(context.Background()).Err())
		d := ask(t, l, c)
		require.False(t, d.Degraded)
		require.Equal(t, want, d.Remaining)
	}
}

// The TTL of an exact log is renewed once in each quarter of a window, by whichever script writes
// then.
func TestWhatAnExactLogAdmittedIsKeptForAWholeWindow(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	const windowMS = 400
	rule := newRule(policy.SlidingWindow, 1000, windowMS)
	c := newCheck("log", 1, rule)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seeded test
	for range 120 {
		<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
		if random.IntN(6) == 0 {
			_, err := l.Refund(t.Context(), c)
			require.NoError(t, err)
		}
		started := time.Now()
		require.True(t, ask(t, l, c).Allowed)
		for _, key := range []string{stateKey(c), ringKey(c, rule.Name)} {
			left, err := r.Client.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			require.Positive(t, left, key)
			require.GreaterOrEqual(t, left+time.Since(started), (windowMS-2)*time.Millisecond, key)
		}
	}
}
