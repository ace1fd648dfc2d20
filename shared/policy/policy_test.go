package policy_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func TestTick(t *testing.T) {
	t.Parallel()

	t.Run("is the shortest time with which the arithmetic is exact", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct {
			name   string
			limit  int64
			window time.Duration
			want   time.Duration
		}{
			{"1 in a millisecond", 1, time.Millisecond, time.Microsecond},
			{"1000 in a minute", 1000, time.Minute, time.Microsecond},
			{"a million in an hour", 1_000_000, time.Hour, time.Microsecond},
			{"a million in a day", 1_000_000, day, time.Millisecond},
			{"a billion in a day", 1_000_000_000, day, time.Second},
			{"a billion in a year", 1_000_000_000, year, 0},
			{"ten million in a year", 10_000_000, year, time.Second},
			{"a million in a year and a millisecond", 1_000_000, year + time.Millisecond, 0},
		} {
			require.Equal(t, tc.want, rule(policy.GCRA, tc.limit, tc.window, 0).Tick(), tc.name)
		}
	})

	// For a valid rule, the tick divides the window, and max(capacity, limit) * (window / tick) is
	// less than 2^52.
	t.Run("keeps the arithmetic of every valid rule exact", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			r := rule(
				rapid.SampledFrom([]policy.Algorithm{policy.FixedWindow, policy.SlidingWindow,
					policy.SlidingWindowCounter, policy.TokenBucket, policy.GCRA}).Draw(rt, "algorithm"),
				rapid.Int64Range(1, policy.MaxLimit).Draw(rt, "limit"),
				instant.Milliseconds(rapid.Int64Range(1, policy.MaxWindow.Milliseconds()).Draw(rt, "window_ms")), 0)
			if r.Algorithm == policy.TokenBucket || r.Algorithm == policy.GCRA {
				r.Burst = rapid.Int64Range(0, policy.MaxLimit).Draw(rt, "burst")
			}
			if _, err := (policy.Policy{Name: "p", Rules: []policy.Rule{r}}).Normalize(); err != nil {
				return
			}

			tick := r.Tick()
			if tick == 0 || r.Window%tick != 0 {
				rt.Fatalf("the tick of %+v is %s", r, tick)
			}
			product := new(big.Int).Mul(big.NewInt(max(r.Capacity(), r.Limit)), big.NewInt(int64(r.Window/tick)))
			if product.Cmp(big.NewInt(1<<52)) >= 0 {
				rt.Fatalf("the product for %+v is %s, want less than 2^52", r, product)
			}
		})
	})
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 10, rule(policy.TokenBucket, 10, time.Second, 0).Capacity())
	require.EqualValues(t, 20, rule(policy.TokenBucket, 10, time.Second, 20).Capacity())
	require.EqualValues(t, 10, rule(policy.FixedWindow, 10, time.Second, 0).Capacity())
}

// TestWorstCase checks the maximum that WorstCase computes for each algorithm. A test in package
// ratelimit shows that a client can reach it.
func TestWorstCase(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule policy.Rule
		want int64
	}{
		{rule(policy.FixedWindow, 100, time.Second, 0), 200},
		{rule(policy.SlidingWindow, 100, time.Second, 0), 100},
		{rule(policy.SlidingWindowCounter, 100, time.Second, 0), 199},
		{rule(policy.TokenBucket, 100, time.Second, 30), 130},
		{rule(policy.GCRA, 100, time.Second, 0), 200},
	} {
		require.Equal(t, tc.want, tc.rule.WorstCase(), tc.rule.Algorithm)
	}
}
