package ratelimit

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// denied charges a key to its limit of 3 an hour and has the next check of cost 1 denied.
func denied(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	full := c
	full.Cost = 3
	require.True(t, ask(t, l, full).Allowed)
	d := ask(t, l, c)
	require.False(t, d.Allowed)
	return d
}

// scripts counts the script calls that Redis sees while do runs.
func scripts(t *testing.T, r *redistest.Redis, do func()) int {
	t.Helper()
	before := commands(t, r, "evalsha")
	do()
	return commands(t, r, "evalsha") - before
}

func TestAKeyKnownToBeDeniedIsAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			r := redistest.Single(t)
			l := open(t, r)
			c := cached(newCheck("k", 1, newRule(algorithm, 3, hour)))
			first := denied(t, l, c)
			require.Zero(t, scripts(t, r, func() {
				for range 100 {
					d := ask(t, l, c)
					require.False(t, d.Allowed)
					require.EqualValues(t, "r", d.Violated)
					require.Equal(t, first.Remaining, d.Remaining)
					require.LessOrEqual(t, *d.RetryAfterMS, *first.RetryAfterMS)
					require.Positive(t, *d.RetryAfterMS)
				}
			}))
		})
	}
}

func TestWhatIsRememberedCountsDownAndEnds(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Single(t))
	now := time.Now()
	l.denied.now = func() time.Time { return now }
	c := cached(newCheck("k", 1, newRule(policy.SlidingWindow, 3, hour)))
	first := denied(t, l, c)
	now = now.Add(10 * time.Minute)
	later := ask(t, l, c)
	require.InDelta(t, *first.RetryAfterMS-10*minute, *later.RetryAfterMS, 5000)
	require.InDelta(t, first.ResetAfterMS-10*minute, later.ResetAfterMS, 5000)
	require.Equal(t, *later.RetryAfterMS, *later.Rules[0].RetryAfterMS)
	_, known := l.knownDenied([]Check{c})
	require.True(t, known)
	now = now.Add(50*time.Minute + time.Second)
	_, known = l.knownDenied([]Check{c})
	require.False(t, known, "after retry_after the store decides")
}

func TestADeniedCostSaysNothingOfASmallerOne(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Single(t))
	r := newRule(policy.SlidingWindow, 3, hour)
	require.True(t, ask(t, l, cached(newCheck("k", 1, r))).Allowed)
	require.False(t, ask(t, l, cached(newCheck("k", 3, r))).Allowed)
	require.False(t, ask(t, l, cached(newCheck("k", 3, r))).Allowed)
	require.True(t, ask(t, l, cached(newCheck("k", 2, r))).Allowed, "two are left")
}

func TestARefundAResetAndAChangeOfThePolicyDropWhatIsRemembered(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	here, there := open(t, r), open(t, r)
	rule := newRule(policy.SlidingWindow, 3, hour)
	for name, drop := range map[string]func(*testing.T, Check) Check{
		"a refund": func(t *testing.T, c Check) Check {
			_, err := here.Refund(t.Context(), c)
			require.NoError(t, err)
			return c
		},
		"a reset": func(t *testing.T, c Check) Check {
			require.NoError(t, here.Reset(t.Context(), c))
			return c
		},
		"a refund of another instance": func(t *testing.T, c Check) Check {
			_, err := there.Refund(t.Context(), c)
			require.NoError(t, err)
			return c
		},
		"a reset of another instance": func(t *testing.T, c Check) Check {
			require.NoError(t, there.Reset(t.Context(), c))
			return c
		},
		"a raised limit": func(_ *testing.T, c Check) Check {
			c.Rules = []policy.Rule{newRule(policy.SlidingWindow, 4, hour)}
			return c
		},
		"another mode": func(_ *testing.T, c Check) Check {
			c.Mode = policy.Shadow
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cached(newCheck(name+" %{*}/", 1, rule))
			denied(t, here, c)
			c = drop(t, c)
			require.Eventually(t, func() bool { return ask(t, here, c).Allowed }, 10*time.Second, time.Millisecond)
		})
	}
}

func TestAPolicyCanSwitchTheDenyCacheOff(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	c := newCheck("k", 1, newRule(policy.GCRA, 3, hour))
	c.NoDenyCache = true
	denied(t, l, c)
	require.Equal(t, 10, scripts(t, r, func() {
		for range 10 {
			require.False(t, ask(t, l, c).Allowed)
		}
	}))
}

func TestWhatCanNeverFitIsNotRememberedAsIfItCould(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Single(t))
	for range 3 {
		d := ask(t, l, cached(newCheck("k", 4, newRule(policy.GCRA, 3, hour))))
		require.False(t, d.Allowed)
		require.Nil(t, d.RetryAfterMS)
	}
}

func TestTheDenyCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_750_000_000, 0)
	d := newDenyCache(func() time.Time { return now })
	d.hear(true)
	wait := hour
	for i := range maxDenied + 1000 {
		c := cached(newCheck(strconv.Itoa(i), 1, newRule(policy.GCRA, 1, hour)))
		d.remember(c, Decision{RetryAfterMS: &wait}, now)
	}
	require.LessOrEqual(t, len(d.entries), maxDenied)
	require.Greater(t, len(d.entries), maxDenied/2)
	for cost := range int64(100) {
		d.remember(cached(newCheck("0", cost+1, newRule(policy.GCRA, 1000, hour))), Decision{RetryAfterMS: &wait}, now)
	}
	require.Len(t, d.entries[denyKey{"p", "0"}], maxCosts)
	now = now.Add(2 * time.Hour)
	d.evict()
	require.Empty(t, d.entries, "what has ended goes first")
}

func TestAnInstanceThatHearsNothingRemembersNothing(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	c := cached(newCheck("k", 1, newRule(policy.GCRA, 3, hour)))
	denied(t, l, c)
	require.NoError(t, r.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
	require.Eventually(t, func() bool {
		l.denied.mu.Lock()
		defer l.denied.mu.Unlock()
		return len(l.denied.entries) == 0
	}, 10*time.Second, time.Millisecond, "a break of the subscription drops all")
	require.Eventually(t, func() bool {
		ask(t, l, c)
		_, known := l.knownDenied([]Check{c})
		return known
	}, 10*time.Second, 10*time.Millisecond, "it is made again")
}

func TestASubscriptionThatFellSilentIsFoundOut(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	c := cached(newCheck("k", 1, newRule(policy.GCRA, 3, hour)))
	denied(t, l, c)
	require.NoError(t, r.Server.Pause())
	defer func() { _ = r.Server.Resume() }()
	require.Eventually(t, func() bool {
		_, known := l.knownDenied([]Check{c})
		return !known
	}, 4*beat, 10*time.Millisecond)
}
