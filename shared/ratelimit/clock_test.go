package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

func TestAClockSetBackGivesNothingAwayAndHoldsNothingBack(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	w := minute * 1000
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
		day := 24 * hour * 1000
		require.EqualValues(t, 10, e.greedy(t, day, c))
		v := e.do(t, 0, opCheck, c) // a day back
		require.False(t, v.fits, "%s: set back, and nothing came in", algorithm)
		require.Positive(t, v.rules[0].retry)
		require.LessOrEqual(t, v.rules[0].retry, 2*w, "%s: nor is the wait a day", algorithm)
		require.True(t, e.allows(t, v.rules[0].retry, c), "%s: after retry, by the clock as it is now, one fits",
			algorithm)
		full := e.do(t, v.rules[0].retry, opPeek, c).rules[0].reset
		require.LessOrEqual(t, full, 2*w)
		require.EqualValues(t, 10, e.greedy(t, v.rules[0].retry+full, c), "%s: and then all", algorithm)
	}
}

func TestAClockSetBackAgainAndAgainStandsStillAtWorst(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
		require.EqualValues(t, 10, e.greedy(t, 100*hour*1000, c))
		for back := int64(99); back > 80; back-- {
			require.False(t, e.allows(t, back*hour*1000, c), algorithm)
			require.False(t, e.allows(t, back*hour*1000+1000, c), algorithm)
		}
	}
}

func TestAClockSetForwardFillsUpAndNoMore(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
		require.EqualValues(t, 10, e.greedy(t, 0, c))
		year := 365 * 24 * hour * 1000
		require.EqualValues(t, 10, e.greedy(t, year, c), algorithm)
		require.EqualValues(t, 0, e.greedy(t, 0, c), "%s: and back", algorithm)
	}
}

// The longest window and the largest limit, a century on: nothing is rounded.
func TestLargeNumbersStayExact(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	at := 100 * 365 * 24 * hour * 1000
	for _, algorithm := range algorithms() {
		r := newRule(algorithm, 99_999, policy.MaxWindowMS)
		c := newCheck(string(algorithm), policy.MaxCost, r)
		for i := range int64(9) {
			require.Equal(t, 99_999-(i+1)*policy.MaxCost, e.do(t, at+i, opCheck, c).rules[0].remaining, algorithm)
		}
		c.Cost = 9999
		require.True(t, e.allows(t, at+10, c), algorithm)
		c.Cost = 1
		v := e.do(t, at+10, opCheck, c)
		require.False(t, v.fits, algorithm)
		require.True(t, e.do(t, at+10+v.rules[0].retry, opPeek, c).fits, algorithm)
		require.False(t, e.do(t, at+10+v.rules[0].retry-r.Tick(), opPeek, c).fits, algorithm)
	}
}
