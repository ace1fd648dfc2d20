package ratelimit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// odd returns keys that would collide, or get several hash slots, under a faulty key layout.
func odd() []string {
	return []string{"k", "*", "}", "{", "{}", "a}b", "a}:r", "{other}", "%", "a/b", "ü €\n\x00", "r", ":r", " 1 2\n3 "}
}

// keysOf returns all keys in Redis.
func keysOf(t *testing.T, r *redistest.Redis) []string {
	t.Helper()
	found, err := r.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	return found
}

// badFields returns the names of the invalid fields of err, in order, or nil if err is nil.
func badFields(t *testing.T, err error) (names []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	require.ErrorIs(t, err, ErrInvalid)
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	for _, field := range f.Fields {
		require.NotEmpty(t, field.Message)
		names = append(names, field.Field)
	}
	return names
}

func TestCheck(t *testing.T) {
	t.Parallel()

	t.Run("unset fields: have defaults", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		d := check(t, l, Check{
			Policy: policy.Policy{Name: "p", Rules: []policy.Rule{newRule(policy.FixedWindow, 5, hour)}}, Key: "k",
		})
		require.True(t, d.Allowed)
		require.EqualValues(t, 1, d.Cost)
		require.EqualValues(t, 4, d.Remaining)
		require.Equal(t, policy.Enforce, d.Mode)
		require.NoError(t, d.Err())
	})

	t.Run("invalid fields: the error names all of them, and nothing is charged", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := open(t, r)
		good := newRule(policy.FixedWindow, 5, hour)
		for name, tc := range map[string]struct {
			spoil func(*Check)
			want  []string
		}{
			"no policy name":     {func(c *Check) { c.Policy.Name = "" }, []string{"policy"}},
			"a name with a /":    {func(c *Check) { c.Policy.Name = "a/b" }, []string{"policy"}},
			"no key":             {func(c *Check) { c.Key = "" }, []string{"key"}},
			"a key of 513 bytes": {func(c *Check) { c.Key = strings.Repeat("k", 513) }, []string{"key"}},
			"broken UTF-8":       {func(c *Check) { c.Key = "\xff" }, []string{"key"}},
			"a negative cost":    {func(c *Check) { c.Cost = -1 }, []string{"cost"}},
			"a cost over 10 000": {func(c *Check) { c.Cost = MaxCost + 1 }, []string{"cost"}},
			"no rules":           {func(c *Check) { c.Policy.Rules = nil }, []string{"rules"}},
			"an invalid rule": {func(c *Check) {
				c.Policy.Rules = []policy.Rule{good, {Name: "r", Limit: -1, Window: time.Nanosecond}}
			}, []string{"rules[1].name", "rules[1].algorithm", "rules[1].limit", "rules[1].window_ms"}},
			"an unknown mode": {func(c *Check) { c.Policy.Mode = "maybe" }, []string{"mode"}},
			"an unknown fallback": {func(c *Check) {
				c.Policy.OnUnavailable = "hope"
			}, []string{"on_unavailable"}},
			"a share that is not a number": {func(c *Check) {
				c.Policy.LocalShare = math.NaN()
			}, []string{"local_share"}},
			"several": {func(c *Check) { *c = Check{Cost: -1} }, []string{"policy", "key", "cost", "rules"}},
		} {
			c := newCheck("k", 1, good)
			tc.spoil(&c)
			_, err := l.Check(t.Context(), c)
			require.Equal(t, tc.want, badFields(t, err), name)
			_, err = l.Peek(t.Context(), c)
			require.Equal(t, tc.want, badFields(t, err), name)
			_, err = l.Refund(t.Context(), c)
			require.Equal(t, tc.want, badFields(t, err), name)
			require.Equal(t, tc.want, badFields(t, l.Reset(t.Context(), c)), name)
		}
		require.Empty(t, keysOf(t, r))
	})

	t.Run("modes: decide what is counted and what is allowed", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		c := newCheck("k", 3, newRule(policy.SlidingWindow, 5, hour))

		c.Policy.Mode = policy.Deny
		d := check(t, l, c)
		require.False(t, d.Allowed)
		require.Equal(t, Never, d.RetryAfter)
		c.Policy.Mode = policy.Allow
		require.True(t, check(t, l, c).Allowed)

		c.Policy.Mode = policy.Shadow
		require.EqualValues(t, 2, check(t, l, c).Remaining, "deny and allow charge nothing, shadow charges")
		d = check(t, l, c)
		require.True(t, d.Allowed)
		require.Equal(t, "r", d.Violated, "the rule that would have denied the check")
		require.EqualValues(t, 2, d.Remaining, "a violation is not charged")

		c.Policy.Mode = policy.Enforce
		require.False(t, check(t, l, c).Allowed, "charges made in shadow mode remain")
	})

	t.Run("overrides: apply to their keys", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		c := newCheck("plain", 1, newRule(policy.GCRA, 1, hour))
		c.Policy.Overrides = []policy.Override{
			{Key: "bot-*", Mode: policy.Deny},
			{Key: "gold", Rules: []policy.Rule{newRule(policy.GCRA, 5, hour)}},
		}
		for key, want := range map[string]int64{"plain": 0, "gold": 4} {
			c.Key = key
			require.Equal(t, want, check(t, l, c).Remaining, key)
		}
		c.Key = "bot-7"
		require.False(t, check(t, l, c).Allowed)
	})

	t.Run("several rules: the decision shows the tightest one", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		second, daily := named("second", newRule(policy.GCRA, 2, second)),
			named("daily", newRule(policy.SlidingWindow, 4, 24*hour))
		c := newCheck("k", 1, second, daily)
		d := check(t, l, c)
		require.EqualValues(t, 2, d.Limit)
		require.EqualValues(t, 1, d.Remaining)

		c.Cost = 3
		d = check(t, l, c)
		require.Equal(t, Never, d.RetryAfter, "the cost exceeds the burst of the first rule")
		require.Equal(t, "second", d.Violated)
		require.Zero(t, d.Rules[1].RetryAfter, "the second rule alone would allow the check")
		require.EqualValues(t, 3, peek(t, l, under(c, daily)).Remaining, "the second rule was not charged")
	})
}

func TestDecisionErr(t *testing.T) {
	t.Parallel()
	denied := Decision{Policy: "login", Violated: "hourly", RetryAfter: time.Minute}
	err := denied.Err()
	require.ErrorIs(t, err, ErrDenied)
	require.ErrorContains(t, err, `the rule "hourly" of the policy "login" denies this key`)
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, time.Minute, f.RetryAfter)

	denied.RetryAfter = Never
	require.ErrorAs(t, denied.Err(), &f)
	require.Zero(t, f.RetryAfter, "0 if RetryAfter is Never")
	require.NoError(t, (&Decision{Allowed: true, Violated: "hourly"}).Err(), "allowed in shadow mode")
}

func TestPeek(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 2, newRule(algorithm, 5, hour))
		before := keysOf(t, r)
		d := peek(t, l, c)
		require.True(t, d.Allowed)
		require.EqualValues(t, 5, d.Remaining)
		require.Zero(t, d.RetryAfter)
		require.Zero(t, d.ResetAfter)
		require.ElementsMatch(t, before, keysOf(t, r), "a peek writes no key")

		require.True(t, check(t, l, c).Allowed)
		require.True(t, check(t, l, c).Allowed)
		denied := peek(t, l, c)
		require.False(t, denied.Allowed)
		require.Equal(t, "r", denied.Violated)
		require.EqualValues(t, 1, denied.Remaining)
		require.InDelta(t, check(t, l, c).RetryAfter, denied.RetryAfter, float64(5*second))
		require.EqualValues(t, 1, peek(t, l, c).Remaining, "neither peeks nor denials are charged")
	}
}

func TestRefund(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 3, newRule(algorithm, 10, hour))
			require.EqualValues(t, 7, check(t, l, c).Remaining)
			c.Cost = 1
			require.EqualValues(t, 8, refund(t, l, c).Remaining)
			c.Cost = MaxCost
			require.EqualValues(t, 10, refund(t, l, c).Remaining, "a refund never exceeds the capacity")
			c.Cost = 10
			require.True(t, check(t, l, c).Allowed)
			require.False(t, check(t, l, c).Allowed)
		}
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		l := open(t, r)
		rules := make([]policy.Rule, 0, len(algorithms()))
		for _, algorithm := range algorithms() {
			rules = append(rules, named(string(algorithm), newRule(algorithm, 10, hour)))
		}
		for _, key := range odd() {
			require.EqualValues(t, 6, check(t, l, newCheck(key, 4, rules...)).Remaining, "%q starts full", key)
		}
		for i, key := range odd() {
			require.NoError(t, l.Reset(t.Context(), newCheck(key, 1, rules...)))
			for j, other := range odd() {
				want := int64(6)
				if j <= i {
					want = 10
				}
				require.Equal(t, want, peek(t, l, newCheck(other, 1, rules...)).Remaining,
					"%q after the reset of %q", other, key)
			}
		}
		if !r.Cluster {
			require.Empty(t, keysOf(t, r))
		}
	})
}
