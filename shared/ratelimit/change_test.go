package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

func TestRuleChange(t *testing.T) {
	t.Parallel()
	t.Run("limit: the charges stay", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for _, tc := range []struct {
				name           string
				limit          int64
				want           int64 // remaining
				next           bool  // another unit fits
				wantAfterReset int64
			}{
				{"raised", 20, 14, true, 20},
				{"lowered a little", 8, 2, true, 8},
				{"lowered to the used units", 6, 0, false, 6},
				{"lowered below the used units", 3, 0, false, 3},
				{"unchanged", 10, 4, true, 10},
			} {
				where := fmt.Sprintf("%s, %s", algorithm, tc.name)
				before, after := newRule(algorithm, 10, minute), newRule(algorithm, tc.limit, minute)
				require.True(t, s.allows(t, 0, newCheck(where, 6, before)), where)
				v := s.do(t, 0, opPeek, newCheck(where, 1, after))
				require.Equal(t, tc.want, v.rules[0].remaining, where)
				require.Equal(t, tc.next, v.fits, where)
				require.Equal(t, tc.want, s.do(t, 0, opPeek, newCheck(where, 1, after)).rules[0].remaining,
					"%s: a peek changes nothing", where)
				require.Equal(t, tc.next, s.allows(t, 0, newCheck(where, 1, after)), where)
				v = s.do(t, 2*micros(minute), opPeek, newCheck(where, 1, after))
				require.Equal(t, tc.wantAfterReset, v.rules[0].remaining, "%s: full after two windows", where)
			}
		}
	})

	t.Run("window: the charges stay", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for _, algorithm := range algorithms() {
			for _, window := range []time.Duration{minute / 2, 2 * minute, hour} {
				key := fmt.Sprintf("%s %s", algorithm, window)
				require.True(t, s.allows(t, 0, newCheck(key, 6, newRule(algorithm, 10, minute))))
				require.EqualValues(t, 4, s.do(t, 0, opPeek,
					newCheck(key, 1, newRule(algorithm, 10, window))).rules[0].remaining, key)
			}
		}
	})

	t.Run("burst: the charges stay, up to the new burst", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		for burst, want := range map[int64]int64{40: 34, 8: 2, 3: 0} {
			r := newRule(policy.GCRA, 10, minute)
			key := fmt.Sprint(burst)
			require.True(t, s.allows(t, 0, newCheck(key, 6, r)))
			r.Burst = burst
			v := s.do(t, 0, opPeek, newCheck(key, 1, r))
			require.Equal(t, want, v.rules[0].remaining, "burst %d", burst)
			if want == 0 {
				require.Equal(t, micros(minute)/10, v.rules[0].retry,
					"debt above the new burst is dropped: a unit fits after one refill")
				require.Equal(t, v, s.do(t, 0, opCheck, newCheck(key, 1, r)), "a check returns the same verdict")
			}
		}
	})

	t.Run("algorithm: the rule starts full and ignores the old state", func(t *testing.T) {
		t.Parallel()
		for name, r := range map[string]*redistest.Redis{"redis": redistest.Single(t), "miniredis": redistest.Mini(t)} {
			s := clockedRedis(r, start)
			for _, from := range algorithms() {
				for _, to := range algorithms() {
					if from == to {
						continue
					}
					where := fmt.Sprintf("%s: from %s to %s", name, from, to)
					old, changed := newRule(from, 10, minute), newRule(to, 7, hour)
					require.True(t, s.allows(t, 0, newCheck(where, 9, old)), where)
					require.EqualValues(t, 7, s.do(t, 1, opPeek, newCheck(where, 1, changed)).rules[0].remaining, where)
					require.True(t, s.allows(t, 1, newCheck(where, 5, changed)), where)
					require.EqualValues(t, 2, s.do(t, 2, opPeek, newCheck(where, 1, changed)).rules[0].remaining, where)
					require.EqualValues(t, 10, s.do(t, 3, opPeek, newCheck(where, 1, old)).rules[0].remaining,
						"%s and back", where)
					require.True(t, s.allows(t, 3, newCheck(where, 10, old)), "%s and back", where)
					require.False(t, s.allows(t, 4, newCheck(where, 1, old)), "%s and back", where)
				}
			}
		}
	})

	t.Run("added rule: starts full while the others keep their charges", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		a, b := named("a", newRule(policy.SlidingWindow, 10, minute)), named("b", newRule(policy.GCRA, 10, minute))
		require.True(t, s.allows(t, 0, newCheck("k", 6, a)))
		v := s.do(t, 0, opCheck, newCheck("k", 1, b, a))
		require.EqualValues(t, 9, v.rules[0].remaining)
		require.EqualValues(t, 3, v.rules[1].remaining, "matched by its name, not its position")
		require.EqualValues(t, 3, s.do(t, 0, opPeek, newCheck("k", 1, a)).rules[0].remaining)
	})

	t.Run("foreign value in the state key: the rule starts full", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := clockedRedis(r, start)
		for _, algorithm := range algorithms() {
			c := newCheck(string(algorithm), 1, newRule(algorithm, 10, minute))
			for _, junk := range []string{
				"", "junk", "1 2", "1 2\n",
				"1 2\nr " + string(algorithm) + " 10 60000000 1 \n",
				"1 2\nr " + string(algorithm) + " x y z 1 2 3\n",
			} {
				require.NoError(t, r.Client.Set(t.Context(), stateKeyOf(c), junk, 0).Err())
				require.True(t, s.allows(t, 0, c), "%s, %q", algorithm, junk)
				require.EqualValues(t, 9, s.do(t, 0, opPeek, c).rules[0].remaining, "%s, %q", algorithm, junk)
			}
		}
	})

	// A check is allowed if and only if its cost and the charges of the last window are together at
	// most the current limit. Earlier limits have no effect.
	t.Run("sliding_window: stays exact while its limit changes", func(t *testing.T) {
		t.Parallel()
		s := onRedis(t)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			at, window := int64(0), micros(minute)
			var admitted []int64
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				at += rapid.Int64Range(0, window/3).Draw(rt, "elapsed")
				limit, cost := rapid.Int64Range(1, 30).Draw(rt, "limit"), rapid.Int64Range(1, 8).Draw(rt, "cost")
				used := int64(0)
				for _, unit := range admitted {
					if unit > at-window {
						used++
					}
				}
				v := s.do(t, at, opCheck, newCheck(fmt.Sprint(run), cost, newRule(policy.SlidingWindow, limit, minute)))
				if want := used+cost <= limit; v.fits != want {
					rt.Fatalf("%d used, limit %d: a cost of %d fits: %v", used, limit, cost, v.fits)
				}
				if v.fits {
					for range cost {
						admitted = append(admitted, at)
					}
					used += cost
				}
				if v.rules[0].remaining != max(0, limit-used) {
					rt.Fatalf("%d used, limit %d: remaining is %d", used, limit, v.rules[0].remaining)
				}
			}
		})
	})

	// The test adds, removes and changes rules, and sets the clock forward and back. Every path
	// through the scripts, on Redis and on miniredis, must return the same numbers, and these must
	// be possible under the current rules.
	t.Run("all stores: agree while rules and clocks change", func(t *testing.T) {
		t.Parallel()
		all := stores(t, start)
		delete(all, "memory") // in the memory store, a changed rule loses its charges
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			at := start
			var rules []policy.Rule
			for range rapid.IntRange(2, 25).Draw(rt, "steps") {
				if rules == nil || rapid.IntRange(0, 2).Draw(rt, "change") == 0 {
					algorithm := rapid.SampledFrom(algorithms()).Draw(rt, "algorithm")
					rules = []policy.Rule{drawRule(rt, algorithm, "a")}
					if rapid.Bool().Draw(rt, "second rule") {
						rules = append(rules, drawRule(rt, rapid.SampledFrom([]policy.Algorithm{policy.GCRA,
							policy.SlidingWindow}).Draw(rt, "algorithm"), "b"))
					}
				}
				at += rapid.SampledFrom([]int64{0, 1, 900, 40_000, 2_000_000, 90_000_000, -1, -5_000_000,
					-100_000_000}).Draw(rt, "elapsed")
				c := newCheck(fmt.Sprint(run), rapid.Int64Range(1, 6).Draw(rt, "cost"), rules...)
				op := rapid.SampledFrom([]operation{opCheck, opCheck, opCheck, opPeek, opRefund}).Draw(rt, "op")
				var first *verdict
				for name, s := range all {
					s.now = at
					v, _, err := s.decide(t.Context(), op, []charge{c.charge()})
					if err != nil {
						rt.Fatalf("%s: %v", name, err)
					}
					if first == nil {
						first = &v[0]
					} else if fmt.Sprint(*first) != fmt.Sprint(v[0]) {
						rt.Fatalf("%s of %d under %+v: %v, but %s: %v", op, c.Cost, rules, *first, name, v[0])
					}
				}
				for i, n := range first.rules {
					if n.remaining < 0 || n.remaining > rules[i].Capacity() || n.retry < never || n.reset < 0 ||
						n.reset > 3*micros(rules[i].Window)*(1+rules[i].Capacity()/rules[i].Limit) {
						rt.Fatalf("%s of %d under %+v: %+v", op, c.Cost, rules[i], n)
					}
				}
			}
		})
	})
}
