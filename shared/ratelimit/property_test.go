package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
)

// clocked is an engine with a clock that the test moves.
type clocked struct {
	engine
	at int64
}

func (c *clocked) micros() int64 { return c.at }

// engines are all that must agree with the model.
func engines(t *testing.T, at int64) map[string]*clocked {
	t.Helper()
	out := make(map[string]*clocked)
	for name, r := range map[string]*redistest.Redis{"redis": redistest.Single(t), "miniredis": redistest.Mini(t)} {
		out[name] = clockedRedis(r, at)
	}
	whole := clockedRedis(redistest.Single(t), at)
	whole.engine.(*Redis).whole = true
	out["redis without the front of the script"] = whole
	m := NewMemory()
	c := &clocked{engine: m, at: at}
	m.now = c.micros
	out["memory"] = c
	return out
}

const start = int64(1_750_000_000_000_000) // an instant in µs

func algorithms() []policy.Algorithm {
	return []policy.Algorithm{policy.FixedWindow, policy.SlidingWindow, policy.SlidingWindowCounter, policy.TokenBucket,
		policy.GCRA}
}

func drawRule(t *rapid.T, algorithm policy.Algorithm, name string) policy.Rule {
	r := policy.Rule{
		Name: name, Algorithm: algorithm, Limit: rapid.Int64Range(1, 12).Draw(t, "limit"),
		WindowMS: rapid.SampledFrom([]int64{1, 7, 1000, 60_000, 86_400_000}).Draw(t, "window_ms"),
	}
	if algorithm == policy.TokenBucket || algorithm == policy.GCRA {
		r.Burst = rapid.Int64Range(0, 20).Draw(t, "burst")
	}
	return r
}

// Every engine admits exactly what the definition admits, and its numbers are exact: what it denies
// fits after retry and not a microsecond sooner, and is full after reset and not a microsecond
// sooner.
func TestEveryEngineAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			all := engines(t, start)
			run := 0
			rapid.Check(t, func(rt *rapid.T) {
				run++
				r := drawRule(rt, algorithm, "r")
				m := newModel(r, start)
				at := start
				c := Check{Policy: "p", Key: strconv.Itoa(run), Rules: []policy.Rule{r}, Mode: policy.Enforce}
				for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
					at += drawElapsed(rt, r, m, at)
					c.Cost = rapid.Int64Range(1, 14).Draw(rt, "cost")
					op := rapid.SampledFrom([]operation{opCheck, opCheck, opCheck, opPeek, opRefund}).Draw(rt, "op")
					fits := m.fits(c.Cost, at)
					switch {
					case op == opRefund:
						m.refund(c.Cost, at)
					case op == opCheck && fits:
						m.charge(c.Cost, at)
					}
					for name, e := range all {
						e.at = at
						v, allowed, err := e.decide(context.Background(), op, []Check{c})
						if err != nil {
							rt.Fatalf("%s: %v", name, err)
						}
						where := fmt.Sprintf("%s, step %d, %s of %d", name, step, op, c.Cost)
						if op == opCheck && allowed != fits {
							rt.Fatalf("%s: allowed is %v, by the definition %v", where, allowed, fits)
						}
						verify(rt, where, m, c, at, op == opCheck && fits, v[0].rules[0])
					}
				}
			})
		})
	}
}

// drawElapsed prefers the instants at which something changes.
func drawElapsed(rt *rapid.T, r policy.Rule, m *model, at int64) int64 {
	w := r.WindowMS * 1000
	switch rapid.IntRange(0, 5).Draw(rt, "kind of step") {
	case 0:
		return 0
	case 1:
		return rapid.Int64Range(0, 3*w).Draw(rt, "elapsed")
	case 2: // the end of the fixed window, or just before
		return w - at%w - rapid.Int64Range(0, 1).Draw(rt, "before")
	case 3: // when the oldest unit leaves, or just before
		if len(m.units) > 0 && m.units[0]+w > at {
			return m.units[0] + w - at - rapid.Int64Range(0, 1).Draw(rt, "before")
		}
		return w
	default:
		return rapid.Int64Range(0, w/max(1, r.Limit)+1).Draw(rt, "elapsed")
	}
}

func verify(rt *rapid.T, where string, m *model, c Check, at int64, charged bool, n numbers) {
	if want := m.remaining(at); n.remaining != want {
		rt.Fatalf("%s: remaining is %d, by the definition %d", where, n.remaining, want)
	}
	if !m.full(at + n.reset) {
		rt.Fatalf("%s: not full after reset, %d µs", where, n.reset)
	}
	if n.reset > 0 && m.full(at+n.reset-1) {
		rt.Fatalf("%s: full before reset, %d µs", where, n.reset)
	}
	switch {
	case charged:
		if n.retry != 0 {
			rt.Fatalf("%s: charged, and yet retry is %d", where, n.retry)
		}
	case c.Cost > m.rule.Capacity():
		if n.retry != -1 {
			rt.Fatalf("%s: can never fit, and yet retry is %d", where, n.retry)
		}
	case n.retry < 0:
		rt.Fatalf("%s: fits some time, and yet retry says never", where)
	default:
		if !m.fits(c.Cost, at+n.retry) {
			rt.Fatalf("%s: does not fit after retry, %d µs", where, n.retry)
		}
		if n.retry > 0 && m.fits(c.Cost, at+n.retry-1) {
			rt.Fatalf("%s: fits before retry, %d µs", where, n.retry)
		}
	}
}

// Rules of all algorithms together: each is charged when all allow, none when one denies.
func TestSeveralRulesAreChargedAllOrNone(t *testing.T) {
	t.Parallel()
	all := engines(t, start)
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
		c := Check{Policy: "p", Key: strconv.Itoa(run), Rules: rules, Mode: policy.Enforce}
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			at += rapid.Int64Range(0, 2_000_000).Draw(rt, "elapsed")
			c.Cost = rapid.Int64Range(1, 4).Draw(rt, "cost")
			fits := true
			for _, m := range models {
				fits = fits && m.fits(c.Cost, at)
			}
			for _, m := range models {
				if fits {
					m.charge(c.Cost, at)
				}
			}
			for name, e := range all {
				e.at = at
				v, allowed, err := e.decide(context.Background(), opCheck, []Check{c})
				if err != nil {
					rt.Fatalf("%s: %v", name, err)
				}
				if allowed != fits {
					rt.Fatalf("%s: allowed is %v, by the definition %v", name, allowed, fits)
				}
				for i, m := range models {
					verify(rt, name+", "+m.rule.Name, m, c, at, fits, v[0].rules[i])
				}
			}
		}
	})
}

func TestEnginesAgreeOnSeveralChecksAtOnce(t *testing.T) {
	t.Parallel()
	all := engines(t, start)
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
			var checks []Check
			for range rapid.IntRange(1, 4).Draw(rt, "checks") { // the same key may be in one call twice
				p := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "policy")
				checks = append(checks, Check{
					Policy: p, Key: strconv.Itoa(run), Rules: rules[p], Cost: rapid.Int64Range(1, 4).Draw(rt, "cost"),
					Mode: rapid.SampledFrom([]policy.Mode{policy.Enforce, policy.Enforce, policy.Shadow}).Draw(rt,
						"mode"),
				})
			}
			type answer struct {
				v       []verdict
				allowed bool
			}
			var first *answer
			for name, e := range all {
				e.at = at
				v, allowed, err := e.decide(context.Background(), opCheck, checks)
				if err != nil {
					rt.Fatalf("%s: %v", name, err)
				}
				if got := (answer{v, allowed}); first == nil {
					first = &got
				} else if fmt.Sprint(*first) != fmt.Sprint(got) {
					rt.Fatalf("engines differ: %v, and %s: %v", *first, name, got)
				}
			}
		}
	})
}
