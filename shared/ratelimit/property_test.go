package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// stores returns every store that must agree with the model.
func stores(t *testing.T, at int64) map[string]*clocked {
	t.Helper()
	out := make(map[string]*clocked)
	for name, r := range map[string]*redistest.Redis{"redis": redistest.Single(t), "miniredis": redistest.Mini(t)} {
		out[name] = clockedRedis(r, at)
	}
	slow := clockedRedis(redistest.Single(t), at)
	slow.store.(*redisStore).noFastPath = true
	out["redis without fast paths"] = slow
	m := newMemoryStore()
	c := &clocked{store: m, now: at}
	m.now = func() int64 { return c.now }
	out["memory"] = c
	return out
}

// newCharge returns an enforced charge of one unit. The number of the run is its key, so that runs
// of a property test do not affect each other.
func newCharge(run int, rules ...policy.Rule) charge {
	c := newCheck(strconv.Itoa(run), 1, rules...)
	return c.charge()
}

func drawRule(t *rapid.T, algorithm policy.Algorithm, name string) policy.Rule {
	r := policy.Rule{
		Name: name, Algorithm: algorithm, Limit: rapid.Int64Range(1, 12).Draw(t, "limit"),
		Window: time.Duration(rapid.SampledFrom([]int64{1, 7, 1000, 60_000, 86_400_000}).Draw(t, "window_ms")) *
			time.Millisecond,
	}
	if algorithm == policy.TokenBucket || algorithm == policy.GCRA {
		r.Burst = rapid.Int64Range(0, 20).Draw(t, "burst")
	}
	return r
}

func TestStores(t *testing.T) {
	t.Parallel()
	// Every store allows exactly the checks that the model allows. Its numbers are exact to the
	// microsecond: a denied cost fits after the retry time but not 1 µs earlier, and the rule is
	// full after the reset time but not 1 µs earlier.
	t.Run("every algorithm: agrees with its definition", func(t *testing.T) {
		t.Parallel()
		for _, algorithm := range algorithms() {
			t.Run(string(algorithm), func(t *testing.T) {
				t.Parallel()
				all := stores(t, start)
				run := 0
				rapid.Check(t, func(rt *rapid.T) {
					run++
					r := drawRule(rt, algorithm, "r")
					m := newModel(r, start)
					at := start
					c := newCharge(run, r)
					for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
						at += drawElapsed(rt, r, m, at)
						c.cost = rapid.Int64Range(1, 14).Draw(rt, "cost")
						op := rapid.SampledFrom([]operation{opCheck, opCheck, opCheck, opPeek, opRefund}).Draw(rt, "op")
						fits := m.fits(c.cost, at)
						switch {
						case op == opRefund:
							m.refund(c.cost, at)
						case op == opCheck && fits:
							m.charge(c.cost, at)
						}
						for name, s := range all {
							s.now = at
							v, allowed, err := s.decide(context.Background(), op, []charge{c})
							if err != nil {
								rt.Fatalf("%s: %v", name, err)
							}
							where := fmt.Sprintf("%s, step %d, %s of %d", name, step, op, c.cost)
							if op == opCheck && allowed != fits {
								rt.Fatalf("%s: allowed is %v, want %v", where, allowed, fits)
							}
							verify(rt, where, m, c, at, op == opCheck && fits, v[0].rules[0])
						}
					}
				})
			})
		}
	})

	t.Run("several rules: all are charged, or none", func(t *testing.T) {
		t.Parallel()
		all := stores(t, start)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			at := start
			var rules []policy.Rule
			var models []*model
			for i := range rapid.IntRange(2, 8).Draw(rt, "rules") {
				r := drawRule(rt, rapid.SampledFrom(algorithms()).Draw(rt, "algorithm"), "r"+strconv.Itoa(i))
				rules, models = append(rules, r), append(models, newModel(r, at))
			}
			c := newCharge(run, rules...)
			for range rapid.IntRange(1, 15).Draw(rt, "steps") {
				at += rapid.Int64Range(0, 2_000_000).Draw(rt, "elapsed")
				c.cost = rapid.Int64Range(1, 4).Draw(rt, "cost")
				fits := true
				for _, m := range models {
					fits = fits && m.fits(c.cost, at)
				}
				for _, m := range models {
					if fits {
						m.charge(c.cost, at)
					}
				}
				for name, s := range all {
					s.now = at
					v, allowed, err := s.decide(context.Background(), opCheck, []charge{c})
					if err != nil {
						rt.Fatalf("%s: %v", name, err)
					}
					if allowed != fits {
						rt.Fatalf("%s: allowed is %v, want %v", name, allowed, fits)
					}
					for i, m := range models {
						verify(rt, name+", "+m.rule.Name, m, c, at, fits, v[0].rules[i])
					}
				}
			}
		})
	})

	t.Run("several checks: every store returns the same decisions", func(t *testing.T) {
		t.Parallel()
		all := stores(t, start)
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			at := start
			rules := make(map[string][]policy.Rule)
			for _, p := range []string{"a", "b"} {
				rules[p] = []policy.Rule{drawRule(rt, rapid.SampledFrom(algorithms()).Draw(rt, "algorithm"), "r")}
			}
			for range rapid.IntRange(1, 10).Draw(rt, "steps") {
				at += rapid.Int64Range(0, 1_000_000).Draw(rt, "elapsed")
				var charges []charge
				for range rapid.IntRange(1, 4).Draw(rt, "checks") { // a call may contain the same key twice
					p := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "policy")
					c := newCharge(run, rules[p]...)
					c.policy, c.cost = p, rapid.Int64Range(1, 4).Draw(rt, "cost")
					modes := []policy.Mode{policy.Enforce, policy.Enforce, policy.Shadow}
					c.Mode = rapid.SampledFrom(modes).Draw(rt, "mode")
					charges = append(charges, c)
				}
				type answer struct {
					v       []verdict
					allowed bool
				}
				var first *answer
				for name, s := range all {
					s.now = at
					v, allowed, err := s.decide(context.Background(), opCheck, charges)
					if err != nil {
						rt.Fatalf("%s: %v", name, err)
					}
					if got := (answer{v, allowed}); first == nil {
						first = &got
					} else if fmt.Sprint(*first) != fmt.Sprint(got) {
						rt.Fatalf("stores differ: %v, but %s: %v", *first, name, got)
					}
				}
			}
		})
	})
}

// drawElapsed returns the time in µs until the next step of the test. The next step is often at a
// time at which the state of m changes, or 1 µs before it.
func drawElapsed(rt *rapid.T, r policy.Rule, m *model, at int64) int64 {
	w := micros(r.Window)
	switch rapid.IntRange(0, 5).Draw(rt, "kind of step") {
	case 0:
		return 0
	case 1:
		return rapid.Int64Range(0, 3*w).Draw(rt, "elapsed")
	case 2: // to the end of the fixed window, or just before
		return w - at%w - rapid.Int64Range(0, 1).Draw(rt, "before")
	case 3: // to the expiry of the oldest unit, or just before
		if len(m.units) > 0 && m.units[0]+w > at {
			return m.units[0] + w - at - rapid.Int64Range(0, 1).Draw(rt, "before")
		}
		return w
	default:
		return rapid.Int64Range(0, w/max(1, r.Limit)+1).Draw(rt, "elapsed")
	}
}

func verify(rt *rapid.T, where string, m *model, c charge, at int64, charged bool, n numbers) {
	if want := m.remaining(at); n.remaining != want {
		rt.Fatalf("%s: remaining is %d, want %d", where, n.remaining, want)
	}
	if !m.full(at + n.reset) {
		rt.Fatalf("%s: not full after the reset time of %d µs", where, n.reset)
	}
	if n.reset > 0 && m.full(at+n.reset-1) {
		rt.Fatalf("%s: full before the reset time of %d µs", where, n.reset)
	}
	switch {
	case charged:
		if n.retry != 0 {
			rt.Fatalf("%s: charged, but retry is %d", where, n.retry)
		}
	case c.cost > m.rule.Capacity():
		if n.retry != never {
			rt.Fatalf("%s: exceeds the capacity, but retry is %d", where, n.retry)
		}
	case n.retry < 0:
		rt.Fatalf("%s: fits later, but retry is never", where)
	default:
		if !m.fits(c.cost, at+n.retry) {
			rt.Fatalf("%s: does not fit after the retry time of %d µs", where, n.retry)
		}
		if n.retry > 0 && m.fits(c.cost, at+n.retry-1) {
			rt.Fatalf("%s: fits before the retry time of %d µs", where, n.retry)
		}
	}
}
