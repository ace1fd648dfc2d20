package ratelimit

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/policy"
)

// maxKeys bounds the memory engine; beyond it the keys that are full again are dropped, and if
// there are none, any.
const maxKeys = 50_000

// Memory is the engine that counts in this process, for when Redis is away: the same algorithms, at
// a share of each limit.
type Memory struct {
	now func() int64 // µs

	mu   sync.Mutex
	keys map[string]*memoryKey
}

type memoryKey struct {
	rules map[string]counted
	full  int64 // when every rule is full again, µs
}

// counted is one rule's state.
type counted interface {
	// advance moves the state to at; it is called before every other method.
	advance(at int64)
	wait(n int64) int64 // µs until n fit, -1 never
	charge(n int64)
	refund(n int64)
	remaining() int64
	reset() int64 // µs until full
	clone() counted
	same(policy.Rule) bool
}

// NewMemory makes an empty engine.
func NewMemory() *Memory {
	started := time.Now()
	wall := started.UnixMicro()
	return &Memory{
		keys: make(map[string]*memoryKey),
		now:  func() int64 { return wall + time.Since(started).Microseconds() }, // monotonic
	}
}

func (e *Memory) decide(_ context.Context, op operation, checks []Check) ([]verdict, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.now()
	before := e.open(at, checks)
	after := make([]map[string]counted, len(checks)) // what the keys become when all is allowed
	for i, c := range checks {
		after[i] = sharedWith(checks[:i], after, c)
		if after[i] == nil {
			after[i] = cloneRules(before[i])
		}
	}
	fitted, allowed := e.apply(op, checks, after)
	shown := after
	if !allowed {
		shown = before
	} else if op != opPeek {
		e.store(at, checks, after)
	}
	out := make([]verdict, len(checks))
	for i, c := range checks {
		out[i] = show(c, shown[i], allowed && fitted[i] && op == opCheck)
	}
	return out, allowed, nil
}

// apply charges or refunds the copies, and reports which checks fitted and whether all may pass.
func (e *Memory) apply(op operation, checks []Check, states []map[string]counted) (fitted []bool, allowed bool) {
	fitted, allowed = make([]bool, len(checks)), true
	for i, c := range checks {
		if op == opRefund {
			each(c, states[i], func(s counted) { s.refund(c.Cost) })
			continue
		}
		fitted[i] = fitsAll(c, states[i])
		switch {
		case op == opPeek:
		case fitted[i]:
			each(c, states[i], func(s counted) { s.charge(c.Cost) })
		case c.Mode != policy.Shadow:
			allowed = false
		}
	}
	return fitted, allowed
}

func show(c Check, state map[string]counted, charged bool) verdict {
	v := verdict{fits: charged || fitsAll(c, state)}
	each(c, state, func(s counted) {
		n := numbers{remaining: s.remaining(), reset: s.reset()}
		if !charged {
			n.retry = s.wait(c.Cost)
		}
		v.rules = append(v.rules, n)
	})
	return v
}

func each(c Check, state map[string]counted, do func(counted)) {
	for _, r := range c.Rules {
		do(state[r.Name])
	}
}

func fitsAll(c Check, state map[string]counted) bool {
	fits := true
	each(c, state, func(s counted) { fits = fits && s.wait(c.Cost) == 0 })
	return fits
}

// open returns each check's rules, advanced to now; a rule whose definition changed starts afresh.
func (e *Memory) open(at int64, checks []Check) []map[string]counted {
	out := make([]map[string]counted, len(checks))
	for i, c := range checks {
		out[i] = make(map[string]counted, len(c.Rules))
		known := e.keys[stateKey(c)]
		for _, r := range c.Rules {
			var s counted
			if known != nil && known.rules[r.Name] != nil && known.rules[r.Name].same(r) {
				s = known.rules[r.Name].clone()
			} else {
				s = newCounted(r)
			}
			s.advance(at)
			out[i][r.Name] = s
		}
	}
	return out
}

// sharedWith finds the state of an earlier check of the same key.
func sharedWith(earlier []Check, states []map[string]counted, c Check) map[string]counted {
	for i, e := range earlier {
		if e.Policy == c.Policy && e.Key == c.Key {
			return states[i]
		}
	}
	return nil
}

func cloneRules(state map[string]counted) map[string]counted {
	out := make(map[string]counted, len(state))
	for name, s := range state {
		out[name] = s.clone()
	}
	return out
}

func (e *Memory) store(at int64, checks []Check, states []map[string]counted) {
	for i, c := range checks {
		full := int64(0)
		each(c, states[i], func(s counted) { full = max(full, s.reset()) })
		if full == 0 {
			delete(e.keys, stateKey(c))
			continue
		}
		e.keys[stateKey(c)] = &memoryKey{rules: states[i], full: at + full}
	}
	if len(e.keys) > maxKeys {
		e.evict(at)
	}
}

func (e *Memory) evict(at int64) {
	for key, k := range e.keys {
		if k.full <= at {
			delete(e.keys, key)
		}
	}
	for key := range e.keys {
		if len(e.keys) <= maxKeys*9/10 {
			return
		}
		delete(e.keys, key)
	}
}

func (e *Memory) reset(_ context.Context, c Check) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, stateKey(c))
	return nil
}

// share scales a rule to the part of it that one instance admits: at least 1.
func share(r policy.Rule, part float64) policy.Rule {
	scale := func(n int64) int64 { return max(1, int64(math.Floor(float64(n)*part))) }
	scaled := r
	scaled.Limit = scale(r.Limit)
	if r.Burst > 0 {
		scaled.Burst = scale(r.Burst)
	}
	return scaled
}
