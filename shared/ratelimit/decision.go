package ratelimit

import (
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// Never is the RetryAfter of a check that will never fit, because its cost exceeds the capacity of
// a rule or the policy denies every check.
const Never time.Duration = math.MaxInt64

// Decision is the result of a check. Limit, Remaining, ResetAfter and RetryAfter are copied from
// the tightest rule: the rule with the longest RetryAfter. If several rules have the same
// RetryAfter, the smallest Remaining decides, and then the longest ResetAfter.
type Decision struct {
	Allowed bool
	Policy  string
	Key     string
	Cost    int64
	Mode    policy.Mode

	Limit     int64 // cost units in one window
	Remaining int64 // cost units that would fit now
	// ResetAfter is the time until Remaining reaches its maximum, if nothing more is charged.
	ResetAfter time.Duration
	// RetryAfter is the time after which the same cost fits, if nothing more is charged: 0 if it
	// fits now, [Never] if waiting cannot help.
	RetryAfter time.Duration
	// Violated names the rule that denied the check or, in shadow mode, would have denied it. It is
	// "" if there is none.
	Violated string
	// Degraded reports that the policy's OnUnavailable decided because Redis was unavailable.
	Degraded bool
	Rules    []RuleDecision // one for each rule of the policy, in its order
}

// RuleDecision is the result of one rule in a [Decision].
type RuleDecision struct {
	// Rule is the rule that was applied. If it was counted in memory because Redis was unavailable,
	// its Limit and Burst are the local share.
	Rule       policy.Rule
	Remaining  int64
	ResetAfter time.Duration
	RetryAfter time.Duration
}

// Err returns nil if the check was allowed. Otherwise it returns a [fault.Error] that matches
// [ErrDenied] and has the decision's RetryAfter, or 0 for [Never].
func (d *Decision) Err() error {
	if d.Allowed {
		return nil
	}

	err := fault.New(fault.QuotaExceeded, "the policy %q denies this key", d.Policy)
	if d.Violated != "" {
		err.Detail = fmt.Sprintf("the rule %q of the policy %q denies this key", d.Violated, d.Policy)
	}
	if d.RetryAfter != Never {
		err.RetryAfter = d.RetryAfter
	}

	return err
}

// Tightest returns the rule from which d.Limit, d.Remaining, d.ResetAfter and d.RetryAfter are
// copied, or nil if d has no rules.
func (d *Decision) Tightest() *RuleDecision {
	var tightest *RuleDecision
	for i := range d.Rules {
		if r := &d.Rules[i]; tightest == nil || r.tighter(tightest) {
			tightest = r
		}
	}

	return tightest
}

func (r *RuleDecision) tighter(other *RuleDecision) bool {
	if r.RetryAfter != other.RetryAfter {
		return r.RetryAfter > other.RetryAfter
	}
	if r.Remaining != other.Remaining {
		return r.Remaining < other.Remaining
	}

	return r.ResetAfter > other.ResetAfter
}

// verdict is the result of one check in a store.
type verdict struct {
	fits  bool
	rules []numbers
}

// numbers are the results of one rule, as the scripts return them. reset and retry are in
// microseconds.
type numbers struct{ remaining, reset, retry int64 }

// never is the value of numbers.retry if waiting cannot help.
const never = -1

// decide converts the verdict of a store into a decision.
func decide(c charge, v verdict) Decision {
	d := Decision{
		Allowed: v.fits || c.Mode == policy.Shadow, Policy: c.policy, Key: c.key, Cost: c.cost, Mode: c.Mode,
		Rules: make([]RuleDecision, len(c.Rules)),
	}
	for i, r := range c.Rules {
		n := v.rules[i]
		retry := Never
		if n.retry != never {
			retry = microseconds(n.retry)
		}
		d.Rules[i] = RuleDecision{Rule: r, Remaining: n.remaining, ResetAfter: microseconds(n.reset), RetryAfter: retry}
	}
	d.summarize(v.fits)

	return d
}

// summarize copies the numbers of the tightest rule to d. If the check does not fit, it also sets
// d.Violated to the name of that rule.
func (d *Decision) summarize(fits bool) {
	t := d.Tightest()
	if t == nil {
		return
	}
	d.Limit, d.Remaining, d.ResetAfter, d.RetryAfter = t.Rule.Limit, t.Remaining, t.ResetAfter, t.RetryAfter
	if !fits {
		d.Violated = t.Rule.Name
	}
}

// microseconds converts n µs to a Duration below [Never]. It caps larger values: a bucket with a
// huge burst may take longer to refill than a Duration can express.
func microseconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
}
