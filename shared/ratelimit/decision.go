// Package ratelimit decides whether something may pass: five algorithms, exact in integers, several
// rules at once, all or none.
//
// The state is in Redis; while Redis is away each instance counts in its own memory at a share of
// each limit.
package ratelimit

import "github.com/sluicehq/sluice/shared/policy"

// Check asks for one key under the rules that hold for it.
type Check struct {
	Policy string
	Key    string
	Cost   int64 // 1 to 10 000
	// Mode and Rules are those in force for the key, overrides applied.
	Mode  policy.Mode
	Rules []policy.Rule
	// OnUnavailable and LocalShare decide while Redis is away.
	OnUnavailable policy.OnUnavailable
	LocalShare    float64
	// NoDenyCache asks Redis also for a key that is known to be denied.
	NoDenyCache bool
}

// RuleDecision is one rule's part of a decision. Times are milliseconds, rounded up.
type RuleDecision struct {
	Name         string           `json:"name"`
	Algorithm    policy.Algorithm `json:"algorithm"`
	Limit        int64            `json:"limit"`
	WindowMS     int64            `json:"window_ms"`
	Remaining    int64            `json:"remaining"`
	ResetAfterMS int64            `json:"reset_after_ms"`
	RetryAfterMS *int64           `json:"retry_after_ms"` // 0 when it fits; nil when waiting can never help

	capacity int64
}

// Capacity is the most that may pass at once: the burst of a bucket, else the limit.
func (d RuleDecision) Capacity() int64 { return d.capacity }

// Decision is the answer to a Check. Its numbers are those of its tightest rule: the one that
// denies for the longest, or else the one with the least remaining.
type Decision struct {
	Allowed      bool           `json:"allowed"`
	Policy       string         `json:"policy"`
	Key          string         `json:"key"`
	Cost         int64          `json:"cost"`
	Remaining    int64          `json:"remaining"`
	Limit        int64          `json:"limit"`
	ResetAfterMS int64          `json:"reset_after_ms"`
	RetryAfterMS *int64         `json:"retry_after_ms"`
	Violated     RuleName       `json:"violated"` // the rule that denied, or would have in shadow mode
	Mode         policy.Mode    `json:"mode"`
	Degraded     bool           `json:"degraded"`
	Rules        []RuleDecision `json:"rules"`
}

// RuleName is the name of a rule; none is null in JSON.
type RuleName string

// MarshalJSON implements json.Marshaler.
func (n RuleName) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return []byte(`"` + n + `"`), nil // a name holds nothing that JSON escapes
}

// Tightest is the rule whose numbers stand in the decision, or nil when there is none.
func (d *Decision) Tightest() *RuleDecision {
	var tightest *RuleDecision
	for i := range d.Rules {
		if r := &d.Rules[i]; tightest == nil || tighter(r, tightest) {
			tightest = r
		}
	}
	return tightest
}

// tighter orders rules: never fits, then the longest wait, then the least remaining, then the
// latest reset.
func tighter(a, b *RuleDecision) bool {
	if wa, wb := wait(a), wait(b); wa != wb {
		return wa > wb
	}
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.ResetAfterMS > b.ResetAfterMS
}

func wait(r *RuleDecision) int64 {
	if r.RetryAfterMS == nil {
		return 1<<63 - 1
	}
	return *r.RetryAfterMS
}

// verdict is what an engine says of one check.
type verdict struct {
	fits  bool
	rules []numbers
}

// numbers are one rule's, in microseconds; retry is -1 when waiting can never help.
type numbers struct{ remaining, reset, retry int64 }

// decide turns an engine's numbers into a decision.
func decide(c Check, v verdict) Decision {
	d := Decision{Allowed: v.fits || c.Mode == policy.Shadow, Policy: c.Policy, Key: c.Key, Cost: c.Cost, Mode: c.Mode,
		Rules: make([]RuleDecision, len(c.Rules))}
	for i, r := range c.Rules {
		n := v.rules[i]
		d.Rules[i] = RuleDecision{
			Name: r.Name, Algorithm: r.Algorithm, Limit: r.Limit, WindowMS: r.WindowMS, capacity: r.Capacity(),
			Remaining: n.remaining, ResetAfterMS: ceilMilli(n.reset),
		}
		if n.retry >= 0 {
			ms := ceilMilli(n.retry)
			d.Rules[i].RetryAfterMS = &ms
		}
	}
	d.summarize(v.fits)
	return d
}

func (d *Decision) summarize(fits bool) {
	t := d.Tightest()
	if t == nil {
		zero := int64(0)
		d.RetryAfterMS = &zero
		return
	}
	d.Limit, d.Remaining, d.ResetAfterMS, d.RetryAfterMS = t.Limit, t.Remaining, t.ResetAfterMS, t.RetryAfterMS
	if !fits {
		d.Violated = RuleName(t.Name)
	}
}

func ceilMilli(micros int64) int64 { return (micros + 999) / 1000 }
