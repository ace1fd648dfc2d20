package ratelimit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

func TestCheckAll(t *testing.T) {
	t.Parallel()

	t.Run("one check is denied: nothing is charged", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			l := open(t, r)
			var checks []Check
			for i := range 19 {
				c := newCheck(odd()[i%len(odd())], 1, newRule(algorithms()[i%5], 10, hour),
					named("second", newRule(policy.SlidingWindow, 20, hour)))
				c.Policy.Name = fmt.Sprintf("p%d", i)
				checks = append(checks, c)
			}
			checks = append(checks, newCheck("narrow", 1, newRule(policy.FixedWindow, 1, 24*hour)))

			decisions, allowed, err := l.CheckAll(t.Context(), checks)
			require.NoError(t, err)
			require.True(t, allowed)
			for i, d := range decisions {
				require.True(t, d.Allowed && !d.Degraded)
				require.Equal(t, checks[i].Policy.Name, d.Policy)
				require.Equal(t, checks[i].Key, d.Key)
			}

			for range 3 {
				decisions, allowed, err = l.CheckAll(t.Context(), checks)
				require.NoError(t, err)
				require.False(t, allowed)
				for i, d := range decisions[:19] {
					require.True(t, d.Allowed, "check %d alone would be allowed", i)
					require.EqualValues(t, 9, d.Remaining, "check %d was charged once, by the first call", i)
				}
				require.Equal(t, "r", decisions[19].Violated)
				for _, c := range checks[:19] {
					require.EqualValues(t, 9, peek(t, l, c).Remaining, "a denied call leaves no charge")
				}
			}
		})
	})

	t.Run("the same key twice: is charged twice", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			l := open(t, r)
			for _, algorithm := range algorithms() {
				c := newCheck(string(algorithm), 2, newRule(algorithm, 5, hour))
				for i, want := range []bool{true, false} {
					_, allowed, err := l.CheckAll(t.Context(), []Check{c, c})
					require.NoError(t, err)
					require.Equal(t, want, allowed, "%s, call %d", algorithm, i)
				}
				require.EqualValues(t, 1, peek(t, l, c).Remaining, algorithm)
			}
		})
	})

	t.Run("invalid checks: are named by their index", func(t *testing.T) {
		t.Parallel()
		l := open(t, redistest.Single(t))
		good := newCheck("k", 1, newRule(policy.GCRA, 10, hour))
		noKey, badRule := good, good
		noKey.Key = ""
		badRule = under(badRule, newRule(policy.GCRA, 0, hour))
		for _, tc := range []struct {
			checks []Check
			want   []string
		}{
			{nil, []string{"checks"}},
			{make([]Check, 21), []string{"checks"}},
			{[]Check{good, noKey, badRule}, []string{"checks[1].key", "checks[2].rules[0].limit"}},
		} {
			_, _, err := l.CheckAll(t.Context(), tc.checks)
			require.Equal(t, tc.want, badFields(t, err))
		}
		require.EqualValues(t, 10, peek(t, l, good).Remaining, "nothing was charged")
	})
}

func TestRequestValidate(t *testing.T) {
	t.Parallel()
	cost := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		request Request
		want    []string
	}{
		"no cost":            {Request{"p", "k", nil}, nil},
		"the largest cost":   {Request{"p", "k", cost(10_000)}, nil},
		"a cost of 0":        {Request{"p", "k", cost(0)}, []string{"cost"}},
		"a negative cost":    {Request{"p", "k", cost(-1)}, []string{"cost"}},
		"a cost over 10 000": {Request{"p", "k", cost(10_001)}, []string{"cost"}},
		"nothing":            {Request{}, []string{"policy", "key"}},
	} {
		require.Equal(t, tc.want, badFields(t, tc.request.Validate()), name)
	}

	require.Equal(t, []string{"checks"}, badFields(t, ValidateAll(nil)))
	require.Equal(t, []string{"checks"}, badFields(t, ValidateAll(make([]Request, 21))))
	require.Equal(t, []string{"checks[1].key", "checks[1].cost"},
		badFields(t, ValidateAll([]Request{{"p", "k", nil}, {"p", "", cost(0)}})))
}
