package ratelimit

import (
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/policy"
)

// maxDenied is the maximum number of keys in the deny cache. Checks of other keys go to Redis.
const maxDenied = 20_000

// maxCosts is the maximum number of cached costs of one key. Each cost has its own retry time.
const maxCosts = 4

// denyCache stores each denial by key and cost until its retry time, so that repeated checks of an
// exhausted key need no round trip. It denies only checks that Redis would deny: before the retry
// time, the cost can fit only after a refund, a reset or a change of the policy, and each of these
// removes the entry. Refunds and resets by other instances arrive through a subscription, after a
// short delay.
type denyCache struct {
	now func() time.Time

	mu         sync.Mutex
	subscribed bool                 // denials are stored only while the subscription works
	entries    map[denyKey][]denial // at most maxCosts for each key
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

// lookup returns the cached denial of a charge, with times relative to now.
func (d *denyCache) lookup(c *charge) (Decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()

	id := denyKey{c.policy, c.key}
	now := d.now()
	for _, entry := range d.entries[id] {
		if entry.cost != c.cost {
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

// at returns the cached decision with its times reduced by the time since Redis decided.
func (e denial) at(now time.Time) Decision {
	decision := e.decision
	decision.Rules = slices.Clone(decision.Rules)
	passed := decision.RetryAfter - e.until.Sub(now)
	for i := range decision.Rules {
		r := &decision.Rules[i]
		r.ResetAfter = max(0, r.ResetAfter-passed)
		r.RetryAfter = max(0, r.RetryAfter-passed)
	}
	decision.summarize(false)

	return decision
}

// remember stores a denial until began + RetryAfter. began is the time before the call to Redis, so
// the cached denial ends no later than the denial in Redis.
func (d *denyCache) remember(c *charge, decision Decision, began time.Time) {
	if decision.RetryAfter <= 0 || decision.RetryAfter == Never {
		return
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.subscribed {
		return
	}
	if len(d.entries) >= maxDenied {
		d.evict()
	}

	id := denyKey{c.policy, c.key}
	kept := slices.DeleteFunc(d.entries[id], func(e denial) bool { return e.cost == c.cost })
	if len(kept) == maxCosts {
		kept = kept[1:]
	}
	d.entries[id] = append(kept,
		denial{until: began.Add(decision.RetryAfter), cost: c.cost, rules: c.Rules, decision: decision})
}

// evict removes the keys whose denials have ended, and then arbitrary keys until the cache is less
// than 90 % full.
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

// cacheable reports whether the deny cache may answer a charge: the mode must be enforce, and the
// policy must not disable the cache.
func (c *charge) cacheable() bool { return !c.NoDenyCache && c.Mode == policy.Enforce }

func (l *Limiter) cachedDenial(c *charge) (Decision, bool) {
	if !c.cacheable() {
		return Decision{}, false
	}

	return l.denied.lookup(c)
}

func (l *Limiter) remember(c *charge, decision Decision, began time.Time) {
	if c.cacheable() && !decision.Allowed && !decision.Degraded {
		l.denied.remember(c, decision, began)
	}
}
