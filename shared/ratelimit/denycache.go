package ratelimit

import (
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/policy"
)

// maxDenied bounds the deny cache. A key that finds no room is asked of Redis, as ever.
const maxDenied = 20_000

// maxCosts bounds how many costs of one key are remembered: each has a retry_after of its own.
const maxCosts = 4

// denyCache remembers which keys are denied, for which cost, and until when, so that a client who
// hammers a closed door costs no round trip. It only says no while Redis would: nothing but a
// refund, a reset or a change of policy lets a key in before its time, and each of them drops the
// entry; refunds and resets of other instances are heard of over a subscription, a moment after
// they are done.
type denyCache struct {
	now func() time.Time

	mu      sync.Mutex
	hearing bool                 // of what others give back; only then is anything remembered
	entries map[denyKey][]denial // at most maxCosts each
}

type denyKey struct{ policy, key string }

type denial struct {
	until    time.Time
	cost     int64
	rules    []policy.Rule
	decision Decision
}

func newDenyCache(now func() time.Time) *denyCache {
	return &denyCache{now: now, entries: make(map[denyKey][]denial)}
}

// lookup returns the decision for a check that is known to be denied at this cost, with its times
// as of now.
func (d *denyCache) lookup(c Check) (Decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := denyKey{c.Policy, c.Key}
	now := d.now()
	for _, entry := range d.entries[id] {
		if entry.cost != c.Cost {
			continue
		}
		if now.Before(entry.until) && slices.Equal(entry.rules, c.Rules) {
			return entry.at(now), true
		}
		delete(d.entries, id)
		break
	}
	return Decision{}, false
}

// at is the remembered decision with the time that has passed since taken off.
func (e denial) at(now time.Time) Decision {
	decision := e.decision
	decision.Rules = slices.Clone(decision.Rules)
	passed := *decision.RetryAfterMS - ceilMilli(e.until.Sub(now).Microseconds())
	for i := range decision.Rules {
		r := &decision.Rules[i]
		r.ResetAfterMS = max(0, r.ResetAfterMS-passed)
		if r.RetryAfterMS != nil {
			left := max(0, *r.RetryAfterMS-passed)
			r.RetryAfterMS = &left
		}
	}
	decision.summarize(false)
	return decision
}

// remember notes a denial that was decided in a call that began at started.
func (d *denyCache) remember(c Check, decision Decision, started time.Time) {
	if decision.RetryAfterMS == nil || *decision.RetryAfterMS <= 0 {
		return
	}
	// Redis decided after started, so its retry_after ends after this; a millisecond is taken off
	// for its rounding up.
	until := started.Add(time.Duration(*decision.RetryAfterMS-1) * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hearing {
		return
	}
	if len(d.entries) >= maxDenied {
		d.evict()
	}
	id := denyKey{c.Policy, c.Key}
	kept := slices.DeleteFunc(d.entries[id], func(e denial) bool { return e.cost == c.Cost })
	if len(kept) == maxCosts {
		kept = kept[1:]
	}
	d.entries[id] = append(kept, denial{until: until, cost: c.Cost, rules: c.Rules, decision: decision})
}

// evict drops what has ended and, if that is nothing, a tenth at random.
func (d *denyCache) evict() {
	now := d.now()
	for id, entries := range d.entries {
		if !slices.ContainsFunc(entries, func(e denial) bool { return now.Before(e.until) }) {
			delete(d.entries, id)
		}
	}
	for id := range d.entries {
		if len(d.entries) < maxDenied*9/10 {
			return
		}
		delete(d.entries, id)
	}
}

func (d *denyCache) forget(id denyKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.entries, id)
}

// knownDenied answers a single enforced check from the cache.
func (l *Limiter) knownDenied(checks []Check) ([]Decision, bool) {
	if len(checks) != 1 || checks[0].NoDenyCache || checks[0].Mode != policy.Enforce {
		return nil, false
	}
	decision, known := l.denied.lookup(checks[0])
	return []Decision{decision}, known
}

func (l *Limiter) remember(checks []Check, decisions []Decision, started time.Time) {
	if len(checks) == 1 && !checks[0].NoDenyCache && checks[0].Mode == policy.Enforce {
		l.denied.remember(checks[0], decisions[0], started)
	}
}
