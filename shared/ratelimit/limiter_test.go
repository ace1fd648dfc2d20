package ratelimit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// odd are keys that a careless layout would confuse, or spread over slots.
func odd() []string {
	return []string{"k", "*", "}", "{", "{}", "a}b", "a}:r", "{other}", "%", "a/b", "ü €\n\x00", "r", ":r", " 1 2\n3 "}
}

// keysOf are all keys of a deployment.
func keysOf(t *testing.T, r *redistest.Redis) []string {
	t.Helper()
	found, err := r.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	return found
}

func TestAPeekTellsWhatACheckWouldAndWritesNothing(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 2, newRule(algorithm, 5, hour))
		before := keysOf(t, r)
		d := peek(t, l, c)
		require.True(t, d.Allowed)
		require.EqualValues(t, 5, d.Remaining)
		require.EqualValues(t, 0, *d.RetryAfterMS)
		require.Zero(t, d.ResetAfterMS)
		require.ElementsMatch(t, before, keysOf(t, r), "no key is made")
		require.True(t, ask(t, l, c).Allowed)
		require.True(t, ask(t, l, c).Allowed)
		denied := peek(t, l, c)
		require.False(t, denied.Allowed)
		require.EqualValues(t, "r", denied.Violated)
		require.EqualValues(t, 1, denied.Remaining)
		require.InDelta(t, *ask(t, l, c).RetryAfterMS, *denied.RetryAfterMS, 5000)
		require.EqualValues(t, 1, peek(t, l, c).Remaining, "neither peeks nor denials are counted")
	}
}

func TestARefundNeverOverfills(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 3, newRule(algorithm, 10, hour))
			require.EqualValues(t, 7, ask(t, l, c).Remaining)
			c.Cost = 1
			d, err := l.Refund(t.Context(), c)
			require.NoError(t, err)
			require.EqualValues(t, 8, d.Remaining)
			c.Cost = policy.MaxCost
			d, err = l.Refund(t.Context(), c)
			require.NoError(t, err)
			require.EqualValues(t, 10, d.Remaining)
			c.Cost = 10
			require.True(t, ask(t, l, c).Allowed)
			require.False(t, ask(t, l, c).Allowed)
		}
	})
}

func TestAResetForgetsItsKeyAndNoOther(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		rules := make([]policy.Rule, 0, len(algorithms()))
		for _, algorithm := range algorithms() {
			rules = append(rules, named(string(algorithm), newRule(algorithm, 10, hour)))
		}
		for _, key := range odd() {
			require.EqualValues(t, 6, ask(t, l, newCheck(key, 4, rules...)).Remaining, "%q starts afresh", key)
		}
		for i, key := range odd() {
			require.NoError(t, l.Reset(t.Context(), newCheck(key, 1, rules...)))
			for j, other := range odd() {
				want := int64(6)
				if j <= i {
					want = 10
				}
				require.Equal(t, want, peek(t, l, newCheck(other, 1, rules...)).Remaining, "%q after the reset of %q",
					other, key)
			}
		}
		if !r.Cluster {
			require.Empty(t, keysOf(t, r))
		}
	})
}

func TestModesDecideWhatIsCountedAndWhatIsAnswered(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Single(t))
	c := newCheck("k", 3, newRule(policy.SlidingWindow, 5, hour))

	c.Mode = policy.Deny
	d := ask(t, l, c)
	require.False(t, d.Allowed)
	require.Nil(t, d.RetryAfterMS, "waiting does not help")
	c.Mode = policy.Allow
	require.True(t, ask(t, l, c).Allowed)
	c.Mode = policy.Shadow
	require.EqualValues(t, 2, ask(t, l, c).Remaining, "neither deny nor allow counted, shadow does")
	d = ask(t, l, c)
	require.True(t, d.Allowed)
	require.EqualValues(t, "r", d.Violated, "it says what it would have denied")
	require.EqualValues(t, 2, d.Remaining, "and does not charge it")
	c.Mode = policy.Enforce
	require.False(t, ask(t, l, c).Allowed, "what the shadow counted is there")
}

func TestTheTightestRuleIsTheOneThatIsShown(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Single(t))
	second, daily := named("second", newRule(policy.GCRA, 2, second)),
		named("daily", newRule(policy.SlidingWindow, 4, 24*hour))
	c := newCheck("k", 1, second, daily)
	d := ask(t, l, c)
	require.EqualValues(t, 2, d.Limit)
	require.EqualValues(t, 1, d.Remaining)
	c.Cost = 3
	d = ask(t, l, c)
	require.Nil(t, d.RetryAfterMS, "over the burst of the first: never")
	require.EqualValues(t, "second", d.Violated)
	require.EqualValues(t, 0, *d.Rules[1].RetryAfterMS, "the second one would have allowed it")
	c.Rules = []policy.Rule{daily}
	require.EqualValues(t, 3, peek(t, l, c).Remaining, "and was not charged")
}

func TestSeveralChecksAreChargedAllOrNone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		var checks []Check
		for i := range 19 {
			c := newCheck(odd()[i%len(odd())], 1, newRule(algorithms()[i%5], 10, hour),
				named("second", newRule(policy.SlidingWindow, 20, hour)))
			c.Policy = fmt.Sprintf("p%d", i)
			checks = append(checks, c)
		}
		narrow := newCheck("narrow", 1, newRule(policy.FixedWindow, 1, 24*hour))
		checks = append(checks, narrow)
		decisions, allowed, err := l.Check(t.Context(), checks)
		require.NoError(t, err)
		require.True(t, allowed)
		for i, d := range decisions {
			require.True(t, d.Allowed && !d.Degraded)
			require.Equal(t, checks[i].Policy, d.Policy)
			require.Equal(t, checks[i].Key, d.Key)
		}
		for range 3 {
			decisions, allowed, err = l.Check(t.Context(), checks)
			require.NoError(t, err)
			require.False(t, allowed)
			for i, d := range decisions[:19] {
				require.True(t, d.Allowed, "check %d alone would have passed", i)
				require.EqualValues(t, 9, d.Remaining, "check %d was charged once, by the first call", i)
			}
			require.EqualValues(t, "r", decisions[19].Violated)
			for _, c := range checks[:19] {
				require.EqualValues(t, 9, peek(t, l, c).Remaining, "nothing is charged in the end")
			}
		}
	})
}

func TestOneKeyTwiceInACallIsChargedTwice(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 2, newRule(algorithm, 5, hour))
			for i, want := range []bool{true, false} {
				_, allowed, err := l.Check(t.Context(), []Check{c, c})
				require.NoError(t, err)
				require.Equal(t, want, allowed, "%s, call %d", algorithm, i)
			}
			require.EqualValues(t, 1, peek(t, l, c).Remaining, algorithm)
		}
	})
}
