package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

// Each algorithm admits, in a stretch of one window's length, as much as the documents say and no
// more. These tests reach the bounds.

func TestAFixedWindowLetsTwiceItsLimitPassAroundItsEdge(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	r := newRule(policy.FixedWindow, 100, second)
	c := newCheck("k", 1, r)
	edge := second * 1000 // µs after start, which is a whole second
	passed := e.greedy(t, edge-1, c) + e.greedy(t, edge, c)
	require.EqualValues(t, 200, passed, "within 2 µs")
	require.Equal(t, r.WorstCase(), passed)
}

func TestASlidingWindowLetsItsLimitPassAndNoMore(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	r := newRule(policy.SlidingWindow, 100, second)
	c := newCheck("k", 1, r)
	require.EqualValues(t, 60, e.greedy(t, 500_000, c)-40)
	passed := int64(100)
	for at := int64(501_000); at < 1_500_000; at += 9000 {
		passed += e.greedy(t, at, c)
	}
	require.Equal(t, r.WorstCase(), passed)
	require.EqualValues(t, 0, e.greedy(t, 1_499_999, c))
	require.EqualValues(t, 100, e.greedy(t, 1_500_000, c), "a window after they were admitted, all count no more")
}

func TestASlidingCounterLetsAlmostTwiceItsLimitPass(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	r := newRule(policy.SlidingWindowCounter, 100, second)
	c := newCheck("k", 1, r)
	last := second*1000 - 1 // the last tick of a window, µs
	passed := e.greedy(t, last, c)
	// the last stop is within the tick before the window is over
	for at := last + 1; at < last+second*1000; at += 9999 {
		passed += e.greedy(t, at, c)
	}
	passed += e.greedy(t, last+second*1000-1, c)
	require.EqualValues(t, 199, passed, "100 at the last tick, and 99 within the window after it")
	require.Equal(t, r.WorstCase(), passed)
}

func TestABucketLetsItsBurstAndWhatDripsInPass(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []policy.Algorithm{policy.TokenBucket, policy.GCRA} {
		e := onRedis(t)
		r := newRule(algorithm, 100, second)
		r.Burst = 30
		c := newCheck("k", 1, r)
		passed := int64(0)
		for at := int64(0); at <= second*1000; at += 5000 {
			passed += e.greedy(t, at, c)
		}
		require.EqualValues(t, 130, passed)
		require.Equal(t, r.WorstCase(), passed)
	}
}
