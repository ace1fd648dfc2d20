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

// span is the interval in which Redis decided an allowed check, in µs: from sending the request to
// receiving the answer. Redis uses the same clock as the test.
type span struct{ from, to int64 }

// checkConcurrently makes checks in 64 goroutines, until the given duration has passed. The
// callback pick returns the check that a goroutine makes next. The result is the spans of the
// allowed checks, sorted by their start.
func checkConcurrently(t *testing.T, l *Limiter, length time.Duration, pick func(caller int) Check) []span {
	t.Helper()
	var mu sync.Mutex
	var allowed []span
	var wait sync.WaitGroup
	ends := time.Now().Add(length)
	for caller := range callers {
		wait.Go(func() {
			for time.Now().Before(ends) {
				from := time.Now().UnixMicro()
				d, err := l.Check(t.Context(), pick(caller))
				to := time.Now().UnixMicro()
				switch {
				case err != nil:
					t.Errorf("unexpected: %v", err)
					return
				case d.Degraded:
					t.Error("decided without Redis")
					return
				case d.Allowed:
					mu.Lock()
					allowed = append(allowed, span{from, to})
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	slices.SortFunc(allowed, func(a, b span) int { return int(a.from - b.from) })
	return allowed
}

// decidedBetween returns the number of spans that lie entirely in [from, to].
func decidedBetween(allowed []span, from, to int64) (n int64) {
	for _, s := range allowed {
		if s.from >= from && s.to <= to {
			n++
		}
	}
	return n
}

// busiest returns the maximum number of spans that lie entirely in one interval of the given length
// in µs.
func busiest(allowed []span, length int64) (most int64) {
	for _, s := range allowed {
		most = max(most, decidedBetween(allowed, s.from, s.from+length))
	}
	return most
}

func TestConcurrentChecks(t *testing.T) {
	t.Parallel()

	t.Run("64 callers for several windows: stay within the worst case", func(t *testing.T) {
		t.Parallel()
		const window, limit = 300_000, 40 // µs
		for _, algorithm := range algorithms() {
			t.Run(string(algorithm), func(t *testing.T) {
				t.Parallel()
				l := open(t, redistest.Single(t))
				rule := newRule(algorithm, limit, window*time.Microsecond)
				allowed := checkConcurrently(t, l, 1500*time.Millisecond,
					func(int) Check { return newCheck("k", 1, rule) })

				require.LessOrEqual(t, busiest(allowed, window-1), rule.WorstCase())
				require.GreaterOrEqual(t, len(allowed), 3*limit, "checks that fit must be allowed")
				switch algorithm {
				case policy.FixedWindow:
					last := allowed[len(allowed)-1].to
					for start := allowed[0].from / window * window; start < last; start += window {
						require.LessOrEqual(t, decidedBetween(allowed, start, start+window-1), int64(limit))
					}
				case policy.TokenBucket, policy.GCRA: // at most a full bucket and its refill in any interval
					for _, length := range []int64{window / 10, window / 2, 2 * window} {
						require.LessOrEqual(t, busiest(allowed, length), limit+limit*length/window+1)
					}
				default:
				}
			})
		}
	})

	t.Run("64 callers in one window: exactly the limit is allowed", func(t *testing.T) {
		t.Parallel()
		for _, algorithm := range algorithms() {
			t.Run(string(algorithm), func(t *testing.T) {
				t.Parallel()
				l := open(t, redistest.Single(t))
				wide := newRule(algorithm, 500, 300*24*hour)
				c := newCheck("k", 1, wide, named("tight", newRule(algorithm, 300, 300*24*hour)))
				var allowed atomic.Int64
				var wait sync.WaitGroup
				for range callers {
					wait.Go(func() {
						for range 10 {
							d, err := l.Check(t.Context(), c)
							switch {
							case err != nil:
								t.Errorf("unexpected: %v", err)
							case d.Allowed:
								allowed.Add(1)
							case d.Violated != "tight":
								t.Errorf("denied by %s", d.Violated)
							}
						}
					})
				}
				wait.Wait()
				require.EqualValues(t, 300, allowed.Load())
				require.EqualValues(t, 200, peek(t, l, under(c, wide)).Remaining,
					"the wide rule was charged only for allowed checks")
			})
		}
	})

	// Instances apply a change of policy at different times, up to a few seconds apart. Until all
	// have applied it, some count under the old rule and some under the new rule.
	t.Run("policy changes under load: stays within the worst case of the wider rule", func(t *testing.T) {
		t.Parallel()
		const window = 300_000 // µs
		for _, algorithm := range algorithms() {
			t.Run(string(algorithm), func(t *testing.T) {
				t.Parallel()
				l := open(t, redistest.Single(t))
				wide := newRule(algorithm, 60, window*time.Microsecond)
				narrow := newRule(algorithm, 20, window*time.Microsecond)
				began := time.Now()
				allowed := checkConcurrently(t, l, 2*time.Second, func(caller int) Check {
					applied := 500*time.Millisecond + time.Duration(caller)*10*time.Millisecond
					if time.Since(began) < applied {
						return newCheck("k", 1, wide)
					}
					return newCheck("k", 1, narrow)
				})

				require.LessOrEqual(t, busiest(allowed, window-1), wide.WorstCase())
				everywhere := began.Add(1200*time.Millisecond).UnixMicro() + window
				late := slices.DeleteFunc(allowed, func(s span) bool { return s.from < everywhere })
				require.LessOrEqual(t, busiest(late, window-1), narrow.WorstCase())
				require.NotEmpty(t, late)
			})
		}
	})
}
