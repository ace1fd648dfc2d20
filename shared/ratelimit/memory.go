package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/policy"
)

// maxKeys is the maximum number of keys in a memory store. Above it, the store first evicts all
// keys whose charges no longer count. Then it evicts arbitrary keys until at most 90 % of maxKeys
// remain.
const maxKeys = 50_000

// memoryStore is the in-process store that a limiter uses while Redis is unavailable. It implements
// the same algorithms as the Lua scripts.
type memoryStore struct {
	now func() int64 // µs

	mu   sync.Mutex
	keys map[string]*memoryKey
}

type memoryKey struct {
	rules  states
	fullAt int64 // the time in µs from which no earlier charge counts against a rule
}

// states are the states of a key's rules, by rule name.
type states map[string]ruleState

func newMemoryStore() *memoryStore {
	started := time.Now()
	wall := started.UnixMicro()

	return &memoryStore{
		keys: make(map[string]*memoryKey),
		now:  func() int64 { return wall + time.Since(started).Microseconds() }, // monotonic
	}
}

func (m *memoryStore) decide(_ context.Context, op operation, charges []charge) ([]verdict, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.now()
	before := m.load(now, charges)
	after := copyForCharging(charges, before)
	fitted, allowed := apply(op, charges, after)
	result := after
	if !allowed {
		result = before
	} else if op != opPeek {
		m.save(now, charges, after)
	}

	verdicts := make([]verdict, len(charges))
	for i, c := range charges {
		verdicts[i] = result[i].verdict(c, allowed && fitted[i] && op == opCheck)
	}

	return verdicts, allowed, nil
}

// load returns the states of each charge's rules, advanced to now. A rule whose definition has
// changed starts without charges.
func (m *memoryStore) load(now int64, charges []charge) []states {
	out := make([]states, len(charges))
	for i, c := range charges {
		out[i] = make(states, len(c.Rules))
		stored := m.keys[stateKey(c)]
		for _, r := range c.Rules {
			state := stored.stateOf(r)
			state.advance(now)
			out[i][r.Name] = state
		}
	}

	return out
}

// stateOf returns a copy of the state of r, or a new state if k has no state for this definition.
func (k *memoryKey) stateOf(r policy.Rule) ruleState {
	if k != nil && k.rules[r.Name] != nil && k.rules[r.Name].definedBy(r) {
		return k.rules[r.Name].clone()
	}

	return newRuleState(r)
}

// copyForCharging clones the states of each charge. Charges to the same key share one clone, so a
// later charge sees the earlier ones.
func copyForCharging(charges []charge, from []states) []states {
	out := make([]states, len(charges))
	for i, c := range charges {
		for j, earlier := range charges[:i] {
			if earlier.policy == c.policy && earlier.key == c.key {
				out[i] = out[j]
			}
		}
		if out[i] == nil {
			out[i] = from[i].clone()
		}
	}

	return out
}

// apply applies op to the states. It reports which charges fit and whether the call is allowed.
func apply(op operation, charges []charge, all []states) (fitted []bool, allowed bool) {
	fitted, allowed = make([]bool, len(charges)), true
	for i, c := range charges {
		if op == opRefund {
			for _, r := range c.Rules {
				all[i][r.Name].refund(c.cost)
			}
			continue
		}

		fitted[i] = all[i].fit(c)
		switch {
		case op == opPeek:
		case fitted[i]:
			for _, r := range c.Rules {
				all[i][r.Name].charge(c.cost)
			}
		case c.Mode != policy.Shadow:
			allowed = false
		}
	}

	return fitted, allowed
}

func (m *memoryStore) save(now int64, charges []charge, all []states) {
	for i, c := range charges {
		full := int64(0)
		for _, r := range c.Rules {
			full = max(full, all[i][r.Name].reset())
		}
		if full == 0 {
			delete(m.keys, stateKey(c))
			continue
		}
		m.keys[stateKey(c)] = &memoryKey{rules: all[i], fullAt: now + full}
	}
	if len(m.keys) > maxKeys {
		m.evict(now)
	}
}

func (m *memoryStore) evict(now int64) {
	for key, k := range m.keys {
		if k.fullAt <= now {
			delete(m.keys, key)
		}
	}
	for key := range m.keys {
		if len(m.keys) <= maxKeys*9/10 {
			return
		}
		delete(m.keys, key)
	}
}

func (m *memoryStore) reset(_ context.Context, c charge) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, stateKey(c))

	return nil
}

func (s states) clone() states {
	out := make(states, len(s))
	for name, state := range s {
		out[name] = state.clone()
	}

	return out
}

// fit reports whether the cost of c fits under every rule.
func (s states) fit(c charge) bool {
	for _, r := range c.Rules {
		if s[r.Name].wait(c.cost) != 0 {
			return false
		}
	}

	return true
}

// verdict returns the numbers of every rule. If the cost was charged, every retry time is 0.
func (s states) verdict(c charge, charged bool) verdict {
	v := verdict{fits: charged || s.fit(c), rules: make([]numbers, len(c.Rules))}
	for i, r := range c.Rules {
		state := s[r.Name]
		v.rules[i] = numbers{remaining: state.remaining(), reset: state.reset()}
		if !charged {
			v.rules[i].retry = state.wait(c.cost)
		}
	}

	return v
}
