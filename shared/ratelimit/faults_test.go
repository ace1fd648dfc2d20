package ratelimit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

// Faults that other limiters shipped. docs/limits.md lists them all, with the test that keeps each
// out.

// upstash/ratelimit-js #156, #161.
func TestADenialConsumesNothing(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 5, newRule(algorithm, 7, minute))
		require.True(t, e.allows(t, 0, c), algorithm)
		for _, cost := range []int64{5, 3, 7, 8, policy.MaxCost} {
			c.Cost = cost
			for range 3 {
				v := e.do(t, 0, opCheck, c)
				require.False(t, v.fits, "%s, cost %d", algorithm, cost)
				require.EqualValues(t, 2, v.rules[0].remaining, "%s, cost %d", algorithm, cost)
			}
		}
		c.Cost = 2
		require.True(t, e.allows(t, 0, c), "%s: the two that were left are still there", algorithm)
	}
}

// Kong #6586, #4755.
func TestAClientThatIsDeniedAllTheTimeIsLetInAsSoonAsOneThatWaits(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		r := newRule(algorithm, 4, second)
		patient, busy := newCheck("patient "+string(algorithm), 1, r), newCheck("busy "+string(algorithm), 1, r)
		require.EqualValues(t, 4, e.greedy(t, 0, patient))
		require.EqualValues(t, 4, e.greedy(t, 0, busy))
		retry := e.do(t, 0, opPeek, patient).rules[0].retry
		for at := int64(0); at < retry; at += 1 + retry/200 {
			require.False(t, e.allows(t, at, busy), algorithm)
		}
		require.True(t, e.allows(t, retry, busy), algorithm)
		require.True(t, e.allows(t, retry, patient), algorithm)
	}
}

// redis_rate #110.
func TestACostThatCanNeverFitIsNotToldToWait(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		for used := range int64(6) {
			c := newCheck(fmt.Sprint(algorithm, used), used, newRule(algorithm, 5, minute))
			if used > 0 {
				require.True(t, e.allows(t, 0, c))
			}
			c.Cost = 6
			require.EqualValues(t, -1, e.do(t, 0, opCheck, c).rules[0].retry, "%s, %d used", algorithm, used)
			c.Cost = 5
			retry := e.do(t, 0, opPeek, c).rules[0].retry
			require.GreaterOrEqual(t, retry, int64(0), "%s: one that can fit is told when", algorithm)
			require.True(t, e.do(t, retry, opPeek, c).fits, "%s: and then it does", algorithm)
		}
	}
}

// redis #15113, throttled #81.
func TestACostThatCanNeverFitIsToldWhatIsLeft(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 3, newRule(algorithm, 5, minute))
		require.True(t, e.allows(t, 0, c))
		c.Cost = 100
		v := e.do(t, 0, opCheck, c)
		require.EqualValues(t, 2, v.rules[0].remaining, algorithm)
		require.Positive(t, v.rules[0].reset, algorithm)
	}
}

// redis-cell #80, #50, #11.
func TestNoRateIsRoundedToNothing(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		for _, tc := range []struct {
			name            string
			limit, windowMS int64
		}{
			{"a thousand a millisecond", 1000, 1},
			{"hundred thousand a second", 100_000, second},
			{"a thousand a minute", 1000, minute},
			{"seven an hour", 7, hour},
			{"one in 366 days", 1, policy.MaxWindowMS},
			{"three in 366 days", 3, policy.MaxWindowMS},
		} {
			where := fmt.Sprintf("%s, %s", algorithm, tc.name)
			c := newCheck(where, 1, newRule(algorithm, tc.limit, tc.windowMS))
			require.Equal(t, tc.limit-1, e.do(t, 0, opCheck, c).rules[0].remaining, where)
			c.Cost = min(tc.limit, policy.MaxCost)
			for left := tc.limit - 1; left >= c.Cost; left -= c.Cost {
				require.True(t, e.allows(t, 0, c), where)
			}
			v := e.do(t, 0, opCheck, c)
			require.False(t, v.fits, where)
			require.True(t, e.do(t, v.rules[0].retry, opPeek, c).fits, where)
			require.False(t, e.do(t, v.rules[0].retry-1, opPeek, c).fits, where)
		}
	}
}

// throttled #27, #26: EXPIRE 0 deletes the key.
func TestAWindowOfAMillisecondStillCounts(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), 1, newRule(algorithm, 2, 1))
		require.EqualValues(t, 2, e.greedy(t, 0, c), algorithm)
		require.EqualValues(t, 0, e.greedy(t, 1, c), "%s: a microsecond later", algorithm)
		require.EqualValues(t, 2, e.greedy(t, 10_000, c), algorithm)
	}
}

// upstash/ratelimit-js #157, #39, #61.
func TestExactlyTheLimitPassesAndWhatRemainsCountsTheCosts(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		for _, limit := range []int64{1, 2, 10} {
			key := fmt.Sprint(algorithm, limit)
			require.Equal(t, limit, e.greedy(t, 0, newCheck(key, 1, newRule(algorithm, limit, minute))), key)
			require.Equal(t, limit, e.greedy(t, 10*minute*1000, newCheck(key, 1, newRule(algorithm, limit, minute))),
				"%s, and again", key)
			whole := newCheck("whole "+key, limit, newRule(algorithm, limit, minute))
			require.True(t, e.allows(t, 0, whole), "the whole limit at once")
			require.False(t, e.allows(t, 0, whole))
		}
		c := newCheck("weights "+string(algorithm), 3, newRule(algorithm, 10, minute))
		for _, want := range []int64{7, 4, 1, 1} {
			require.Equal(t, want, e.do(t, 0, opCheck, c).rules[0].remaining, algorithm)
		}
	}
}

// redis_rate #42, redis-gcra #10.
func TestNothingPassesEarlyAndAPeekAgreesWithTheCheck(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		for cost := int64(1); cost <= 3; cost++ {
			c := newCheck(fmt.Sprint(algorithm, cost), cost, newRule(algorithm, 3, second))
			one := c
			one.Cost = 1
			e.greedy(t, 100, one)
			at := int64(100)
			for range 4 {
				v := e.do(t, at, opCheck, c)
				require.False(t, v.fits)
				retry := v.rules[0].retry
				require.Equal(t, v, e.do(t, at, opPeek, c), "%s: a peek says the same", algorithm)
				require.False(t, e.do(t, at+retry-1, opPeek, c).fits, algorithm)
				require.False(t, e.allows(t, at+retry-1, c), "%s: not a microsecond early", algorithm)
				at += retry
				require.True(t, e.do(t, at, opPeek, c).fits, algorithm)
				require.True(t, e.allows(t, at, c), algorithm)
				e.greedy(t, at, one)
			}
		}
	}
}

// Lua writes large numbers as 1.7330000000001e+15, and returns fractions cut off.
func TestEveryNumberInAStateIsWrittenInFull(t *testing.T) {
	t.Parallel()
	e := onRedis(t)
	for _, algorithm := range algorithms() {
		c := newCheck(string(algorithm), policy.MaxCost, newRule(algorithm, 99_999, policy.MaxWindowMS))
		require.True(t, e.allows(t, 1, c))
		state, err := e.engine.(*Redis).conn.Client().Get(t.Context(), stateKey(c)).Result()
		require.NoError(t, err)
		require.NotRegexp(t, `[0-9]e|\.|nan|inf`, state)
		require.Contains(t, state, fmt.Sprint(start+1))
	}
}
