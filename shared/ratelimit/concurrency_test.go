package ratelimit

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

const callers = 64

// span is when an admitted check may have been decided: after it was sent, before its answer was
// there, µs. Redis has the same clock.
type span struct{ from, to int64 }

// hammer checks from 64 goroutines for as long as it is told, each time under the rules that pick
// gives it, and returns the admitted ones by their start.
func hammer(t *testing.T, l *Limiter, length time.Duration, pick func(caller int) Check) []span {
	t.Helper()
	var mu sync.Mutex
	var admitted []span
	var wait sync.WaitGroup
	ends := time.Now().Add(length)
	for caller := range callers {
		wait.Go(func() {
			for time.Now().Before(ends) {
				from := time.Now().UnixMicro()
				decisions, _, err := l.Check(t.Context(), []Check{pick(caller)})
				to := time.Now().UnixMicro()
				switch {
				case err != nil:
					t.Errorf("unexpected: %v", err)
					return
				case decisions[0].Degraded:
					t.Error("decided without Redis")
					return
				case decisions[0].Allowed:
					mu.Lock()
					admitted = append(admitted, span{from, to})
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	slices.SortFunc(admitted, func(a, b span) int { return int(a.from - b.from) })
	return admitted
}

// within counts the checks that were surely decided in [from, to].
func within(admitted []span, from, to int64) (n int64) {
	for _, s := range admitted {
		if s.from >= from && s.to <= to {
			n++
		}
	}
	return n
}

// busiest is the most that was surely admitted in any stretch of so many µs.
func busiest(admitted []span, length int64) (most int64) {
	for _, s := range admitted {
		most = max(most, within(admitted, s.from, s.from+length))
	}
	return most
}

func TestNoWindowIsEverOverItsLimitAt64WayConcurrency(t *testing.T) {
	t.Parallel()
	const window, limit = 300_000, 40 // µs
	for _, algorithm := range algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			l := open(t, redistest.Single(t))
			rule := newRule(algorithm, limit, window/1000)
			admitted := hammer(t, l, 1500*time.Millisecond, func(int) Check { return newCheck("k", 1, rule) })
			require.LessOrEqual(t, busiest(admitted, window-1), rule.WorstCase())
			require.GreaterOrEqual(t, len(admitted), 3*limit, "and what fits is let in")
			switch algorithm {
			case policy.FixedWindow:
				for start := admitted[0].from / window * window; start < admitted[len(admitted)-1].to; start += window {
					require.LessOrEqual(t, within(admitted, start, start+window-1), int64(limit))
				}
			case policy.TokenBucket, policy.GCRA: // of every stretch: a full bucket, and what drips in meanwhile
				for _, length := range []int64{window / 10, window / 2, 2 * window} {
					require.LessOrEqual(t, busiest(admitted, length), limit+limit*length/window+1)
				}
			default:
			}
		})
	}
}

func TestOf64CallersAtOnceExactlyTheLimitPasses(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			l := open(t, redistest.Single(t))
			c := newCheck("k", 1, newRule(algorithm, 500, 300*24*hour),
				named("tight", newRule(algorithm, 300, 300*24*hour)))
			var passed atomic.Int64
			var wait sync.WaitGroup
			for range callers {
				wait.Go(func() {
					for range 10 {
						decisions, _, err := l.Check(t.Context(), []Check{c})
						switch {
						case err != nil:
							t.Errorf("unexpected: %v", err)
						case decisions[0].Allowed:
							passed.Add(1)
						case decisions[0].Violated != "tight":
							t.Errorf("denied by %s", decisions[0].Violated)
						}
					}
				})
			}
			wait.Wait()
			require.EqualValues(t, 300, passed.Load())
			c.Rules = c.Rules[:1]
			require.EqualValues(t, 200, peek(t, l, c).Remaining, "the other rule was charged for what passed, no more")
		})
	}
}

// Instances learn of a change within seconds of each other; until then some count under the old
// rule and some under the new one.
func TestAPolicyChangedUnderLoadNeverLetsMoreThanTheWiderRulePass(t *testing.T) {
	t.Parallel()
	const window = 300_000 // µs
	for _, algorithm := range algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			l := open(t, redistest.Single(t))
			wide, narrow := newRule(algorithm, 60, window/1000), newRule(algorithm, 20, window/1000)
			began := time.Now()
			admitted := hammer(t, l, 2*time.Second, func(caller int) Check {
				changed := time.Duration(caller) * 10 * time.Millisecond // when this caller hears of it
				if time.Since(began) < 500*time.Millisecond+changed {
					return newCheck("k", 1, wide)
				}
				return newCheck("k", 1, narrow)
			})
			require.LessOrEqual(t, busiest(admitted, window-1), wide.WorstCase())
			settled := began.Add(1200*time.Millisecond).UnixMicro() + window
			late := slices.DeleteFunc(admitted, func(s span) bool { return s.from < settled })
			require.LessOrEqual(t, busiest(late, window-1), narrow.WorstCase())
			require.NotEmpty(t, late)
		})
	}
}
