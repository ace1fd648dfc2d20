package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

// TestWorstCase reaches the bounds in docs/limits.md: the maximum cost that each algorithm admits
// in an interval of one window's length.
func TestWorstCase(t *testing.T) {
	t.Parallel()

	t.Run("fixed_window: twice the limit around the end of a window", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		r := newRule(policy.FixedWindow, 100, second)
		c := newCheck("k", 1, r)
		edge := micros(second) // the end of a window, in µs after start

		allowed := s.exhaust(t, edge-1, c) + s.exhaust(t, edge, c)
		require.EqualValues(t, 200, allowed, "within 2 µs")
		require.Equal(t, r.WorstCase(), allowed)
	})

	t.Run("sliding_window: the limit", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		r := newRule(policy.SlidingWindow, 100, second)
		c := newCheck("k", 1, r)

		require.EqualValues(t, 100, s.exhaust(t, 500_000, c))
		allowed := int64(100)
		for at := int64(501_000); at < 1_500_000; at += 9000 {
			allowed += s.exhaust(t, at, c)
		}
		require.Equal(t, r.WorstCase(), allowed)
		require.Zero(t, s.exhaust(t, 1_499_999, c))
		require.EqualValues(t, 100, s.exhaust(t, 1_500_000, c), "one window later, no charge counts")
	})

	t.Run("sliding_window_counter: twice the limit, less one", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		r := newRule(policy.SlidingWindowCounter, 100, second)
		c := newCheck("k", 1, r)
		last := micros(second) - 1 // the last tick of a window

		allowed := s.exhaust(t, last, c)
		for at := last + 1; at < last+micros(second); at += 9999 {
			allowed += s.exhaust(t, at, c)
		}
		allowed += s.exhaust(t, last+micros(second)-1, c)
		require.EqualValues(t, 199, allowed, "100 at the last tick of a window, and 99 in the next window")
		require.Equal(t, r.WorstCase(), allowed)
	})

	t.Run("buckets: the burst and the refill of one window", func(t *testing.T) {
		t.Parallel()
		for _, algorithm := range []policy.Algorithm{policy.TokenBucket, policy.GCRA} {
			s := onRedis(t)
			r := newRule(algorithm, 100, second)
			r.Burst = 30
			c := newCheck("k", 1, r)

			allowed := int64(0)
			for at := int64(0); at <= micros(second); at += 5000 {
				allowed += s.exhaust(t, at, c)
			}
			require.EqualValues(t, 130, allowed)
			require.Equal(t, r.WorstCase(), allowed)
		}
	})
}
