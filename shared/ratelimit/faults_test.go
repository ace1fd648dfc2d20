package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

// TestDecide shows that the limiter does not have certain defects of other limiters. The comment
// above a sub-test names the issues in which its defect was reported. docs/limits.md lists the
// defects and the tests.
func TestDecide(t *testing.T) {
	t.Parallel()
	// upstash/ratelimit-js #156, #161.
	t.Run("denial: charges nothing", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 5, newRule(algorithm, 7, minute))
			require.True(t, s.allows(t, 0, c), algorithm)
			for _, cost := range []int64{5, 3, 7, 8, MaxCost} {
				c.Cost = cost
				for range 3 {
					v := s.do(t, 0, opCheck, c)
					require.False(t, v.fits, "%s, cost %d", algorithm, cost)
					require.EqualValues(t, 2, v.rules[0].remaining, "%s, cost %d", algorithm, cost)
				}
			}
			c.Cost = 2
			require.True(t, s.allows(t, 0, c), "%s: the remaining two still fit", algorithm)
		}
	})

	// Kong #6586, #4755.
	t.Run("repeated denials: do not delay the next grant", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			r := newRule(algorithm, 4, second)
			waiting, busy := newCheck("waiting "+string(algorithm), 1, r), newCheck("busy "+string(algorithm), 1, r)
			require.EqualValues(t, 4, s.exhaust(t, 0, waiting))
			require.EqualValues(t, 4, s.exhaust(t, 0, busy))
			retry := s.do(t, 0, opPeek, waiting).rules[0].retry
			for at := int64(0); at < retry; at += 1 + retry/200 {
				require.False(t, s.allows(t, at, busy), algorithm)
			}
			require.True(t, s.allows(t, retry, busy), algorithm)
			require.True(t, s.allows(t, retry, waiting), algorithm)
		}
	})

	// redis_rate #110.
	t.Run("cost over the capacity: has no retry time", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for used := range int64(6) {
				c := newCheck(fmt.Sprint(algorithm, used), used, newRule(algorithm, 5, minute))
				if used > 0 {
					require.True(t, s.allows(t, 0, c))
				}
				c.Cost = 6
				require.EqualValues(t, never, s.do(t, 0, opCheck, c).rules[0].retry, "%s, %d used", algorithm, used)
				c.Cost = 5
				retry := s.do(t, 0, opPeek, c).rules[0].retry
				require.GreaterOrEqual(t, retry, int64(0), "%s: a cost that can fit has a retry time", algorithm)
				require.True(t, s.do(t, retry, opPeek, c).fits, "%s: the cost fits after the retry time", algorithm)
			}
		}
	})

	// redis #15113, throttled #81.
	t.Run("cost over the capacity: remaining is still reported", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 3, newRule(algorithm, 5, minute))
			require.True(t, s.allows(t, 0, c))
			c.Cost = 100
			v := s.do(t, 0, opCheck, c)
			require.EqualValues(t, 2, v.rules[0].remaining, algorithm)
			require.Positive(t, v.rules[0].reset, algorithm)
		}
	})

	// redis-cell #80, #50, #11.
	t.Run("very fast and very slow rates: are exact", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for _, tc := range []struct {
				name   string
				limit  int64
				window time.Duration
			}{
				{"a thousand a millisecond", 1000, time.Millisecond},
				{"a hundred thousand a second", 100_000, second},
				{"a thousand a minute", 1000, minute},
				{"seven an hour", 7, hour},
				{"one in 366 days", 1, policy.MaxWindow},
				{"three in 366 days", 3, policy.MaxWindow},
			} {
				where := fmt.Sprintf("%s, %s", algorithm, tc.name)
				c := newCheck(where, 1, newRule(algorithm, tc.limit, tc.window))
				require.Equal(t, tc.limit-1, s.do(t, 0, opCheck, c).rules[0].remaining, where)
				c.Cost = min(tc.limit, MaxCost)
				for left := tc.limit - 1; left >= c.Cost; left -= c.Cost {
					require.True(t, s.allows(t, 0, c), where)
				}
				v := s.do(t, 0, opCheck, c)
				require.False(t, v.fits, where)
				require.True(t, s.do(t, v.rules[0].retry, opPeek, c).fits, where)
				require.False(t, s.do(t, v.rules[0].retry-1, opPeek, c).fits, where)
			}
		}
	})

	// throttled #27, #26: EXPIRE with 0 s deletes the key.
	t.Run("window of a millisecond: counts", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 1, newRule(algorithm, 2, time.Millisecond))
			require.EqualValues(t, 2, s.exhaust(t, 0, c), algorithm)
			require.EqualValues(t, 0, s.exhaust(t, 1, c), "%s: 1 µs later", algorithm)
			require.EqualValues(t, 2, s.exhaust(t, 10_000, c), algorithm)
		}
	})

	// upstash/ratelimit-js #157, #39, #61.
	t.Run("limit: exactly the limit is allowed, and remaining decreases by the cost", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for _, limit := range []int64{1, 2, 10} {
				key := fmt.Sprint(algorithm, limit)
				one := newCheck(key, 1, newRule(algorithm, limit, minute))
				require.Equal(t, limit, s.exhaust(t, 0, one), key)
				require.Equal(t, limit, s.exhaust(t, 10*micros(minute), one), "%s: ten windows later", key)
				all := newCheck("all "+key, limit, newRule(algorithm, limit, minute))
				require.True(t, s.allows(t, 0, all), "the whole limit in one check")
				require.False(t, s.allows(t, 0, all))
			}
			c := newCheck("weights "+string(algorithm), 3, newRule(algorithm, 10, minute))
			for _, want := range []int64{7, 4, 1, 1} {
				require.Equal(t, want, s.do(t, 0, opCheck, c).rules[0].remaining, algorithm)
			}
		}
	})

	// redis_rate #42, redis-gcra #10.
	t.Run("retry time: is exact, and a peek agrees", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for cost := int64(1); cost <= 3; cost++ {
				c := newCheck(fmt.Sprint(algorithm, cost), cost, newRule(algorithm, 3, second))
				one := c
				one.Cost = 1
				s.exhaust(t, 100, one)
				at := int64(100)
				for range 4 {
					v := s.do(t, at, opCheck, c)
					require.False(t, v.fits)
					retry := v.rules[0].retry
					require.Equal(t, v, s.do(t, at, opPeek, c), "%s: a peek returns the same verdict", algorithm)
					require.False(t, s.do(t, at+retry-1, opPeek, c).fits, algorithm)
					require.False(t, s.allows(t, at+retry-1, c), "%s: denied 1 µs before the retry time", algorithm)
					at += retry
					require.True(t, s.do(t, at, opPeek, c).fits, algorithm)
					require.True(t, s.allows(t, at, c), algorithm)
					s.exhaust(t, at, one)
				}
			}
		}
	})

	// Lua formats large numbers as 1.7330000000001e+15. Redis truncates fractions in replies.
	t.Run("large numbers: are stored in full", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), MaxCost, newRule(algorithm, 99_999, policy.MaxWindow))
			require.True(t, s.allows(t, 1, c))
			state, err := s.store.(*redisStore).conn.Client().Get(t.Context(), stateKeyOf(c)).Result()
			require.NoError(t, err)
			require.NotRegexp(t, `[0-9]e|\.|nan|inf`, state)
			require.Contains(t, state, fmt.Sprint(start+1))
		}
	})
}
