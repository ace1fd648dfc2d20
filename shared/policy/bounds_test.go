package policy_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/policy"
)

// A rule that is valid never makes the math inexact: the tick divides the window, and capacity and
// limit times the window stay below 2^52.
func TestNoValidRuleOverflows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rule(
			rapid.SampledFrom([]policy.Algorithm{policy.FixedWindow, policy.SlidingWindow, policy.SlidingWindowCounter,
				policy.TokenBucket, policy.GCRA}).Draw(rt, "algorithm"),
			rapid.Int64Range(1, policy.MaxLimit).Draw(rt, "limit"),
			rapid.Int64Range(1, policy.MaxWindowMS).Draw(rt, "window_ms"), 0)
		if r.Algorithm == policy.TokenBucket || r.Algorithm == policy.GCRA {
			r.Burst = rapid.Int64Range(0, policy.MaxLimit).Draw(rt, "burst")
		}
		if _, err := (policy.Policy{Name: "p", Rules: []policy.Rule{r}}).Normalize(); err != nil {
			return
		}
		tick := r.Tick()
		if tick == 0 || r.WindowMS*1000%tick != 0 {
			rt.Fatalf("the tick of %+v is %d µs", r, tick)
		}
		product := new(big.Int).Mul(big.NewInt(max(r.Capacity(), r.Limit)), big.NewInt(r.WindowMS*1000/tick))
		if product.Cmp(big.NewInt(1<<52)) >= 0 {
			rt.Fatalf("the product of %+v is %s", r, product)
		}
	})
}

func TestTheTickIsAMicrosecondUntilTheWindowIsTooLong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		limit, windowMS int64
		want            int64
	}{
		{"1 in a millisecond", 1, 1, 1},
		{"1000 in a minute", 1000, 60_000, 1},
		{"a million in an hour", 1_000_000, 3_600_000, 1},
		{"a million in a day", 1_000_000, day, 1000},
		{"a thousand million in a day", 1_000_000_000, day, 1_000_000},
		{"a thousand million in a year", 1_000_000_000, 365 * day, 0},
		{"ten million in a year", 10_000_000, 365 * day, 1_000_000},
		{"a million in a year of uneven length", 1_000_000, 365*day + 1, 0},
	} {
		got := rule(policy.GCRA, tc.limit, tc.windowMS, 0).Tick()
		require.Equal(t, tc.want, got, tc.name)
	}
}

func TestCapacityIsTheBurstOfABucketAndElseTheLimit(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 10, rule(policy.TokenBucket, 10, 1000, 0).Capacity())
	require.EqualValues(t, 20, rule(policy.TokenBucket, 10, 1000, 20).Capacity())
	require.EqualValues(t, 10, rule(policy.FixedWindow, 10, 1000, 0).Capacity())
}

func TestWorstCaseIsTheBoundThatTheDocumentsState(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule policy.Rule
		want int64
	}{
		{rule(policy.FixedWindow, 100, 1000, 0), 200},
		{rule(policy.SlidingWindow, 100, 1000, 0), 100},
		{rule(policy.SlidingWindowCounter, 100, 1000, 0), 199},
		{rule(policy.TokenBucket, 100, 1000, 30), 130},
		{rule(policy.GCRA, 100, 1000, 0), 200},
	} {
		require.Equal(t, tc.want, tc.rule.WorstCase(), tc.rule.Algorithm)
	}
}
