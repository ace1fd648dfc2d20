package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

func TestServerClock(t *testing.T) {
	t.Parallel()

	t.Run("set back: units are granted neither early nor late", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
			require.EqualValues(t, 10, s.exhaust(t, micros(24*hour), c))

			v := s.do(t, 0, opCheck, c) // a day earlier
			require.False(t, v.fits, algorithm)
			require.Positive(t, v.rules[0].retry)
			require.LessOrEqual(t, v.rules[0].retry, micros(2*minute),
				"%s: the retry time does not include the day", algorithm)
			require.True(t, s.allows(t, v.rules[0].retry, c), "%s: a unit fits after retry on the new clock", algorithm)

			full := s.do(t, v.rules[0].retry, opPeek, c).rules[0].reset
			require.LessOrEqual(t, full, micros(2*minute))
			require.EqualValues(t, 10, s.exhaust(t, v.rules[0].retry+full, c), "%s: all fit after reset", algorithm)
		}
	})

	t.Run("set back repeatedly: grants nothing", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
			require.EqualValues(t, 10, s.exhaust(t, micros(100*hour), c))
			for back := 99 * hour; back > 80*hour; back -= hour {
				require.False(t, s.allows(t, micros(back), c), algorithm)
				require.False(t, s.allows(t, micros(back)+1000, c), algorithm)
			}
		}
	})

	t.Run("set forward: fills the rule once", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
			require.EqualValues(t, 10, s.exhaust(t, 0, c))
			require.EqualValues(t, 10, s.exhaust(t, micros(365*24*hour), c), algorithm)
			require.Zero(t, s.exhaust(t, 0, c), "%s: after the clock is set back again", algorithm)
		}
	})

	// The rule has the longest window and a large limit, and the clock is 100 years after start.
	t.Run("large numbers: stay exact", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		at := micros(100 * 365 * 24 * hour)
		for _, algorithm := range algorithms() {
			r := newRule(algorithm, 99_999, policy.MaxWindow)
			c := newCheck(string(algorithm), MaxCost, r)
			for i := range int64(9) {
				require.Equal(t, 99_999-(i+1)*MaxCost, s.do(t, at+i, opCheck, c).rules[0].remaining, algorithm)
			}
			c.Cost = 9999
			require.True(t, s.allows(t, at+10, c), algorithm)

			c.Cost = 1
			v := s.do(t, at+10, opCheck, c)
			require.False(t, v.fits, algorithm)
			require.True(t, s.do(t, at+10+v.rules[0].retry, opPeek, c).fits, algorithm)
			require.False(t, s.do(t, at+10+v.rules[0].retry-micros(r.Tick()), opPeek, c).fits, algorithm)
		}
	})
}
