package ratelimit

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// engine counts somewhere. One conformance suite runs against every engine.
type engine interface {
	// decide answers all checks at once: when one that is enforced does not fit, none is charged
	// and allowed is false.
	decide(ctx context.Context, op operation, checks []Check) (verdicts []verdict, allowed bool, err error)
	reset(ctx context.Context, c Check) error
}

// Limiter decides with Redis, with a cache of what is known to be denied before it, and with each
// policy's fallback behind it.
type Limiter struct {
	redis  *Redis
	memory *Memory
	denied *denyCache
}

// New makes a Limiter. Until ctx ends it listens, in the background, to what other instances give
// back.
func New(ctx context.Context, redis *Redis) *Limiter {
	l := &Limiter{redis: redis, memory: NewMemory(), denied: newDenyCache(time.Now)}
	go l.denied.listen(ctx, redis.conn.Client())
	return l
}

// Check charges every check or none: when one that is enforced denies, nothing is charged, and its
// decision says why.
//
// In a cluster, checks whose keys are in different slots are charged one slot after the other and
// given back when a later one denies; until then, at most one more round trip, others may be denied
// by what is given back.
//
// While Redis is away each policy's OnUnavailable decides. The only errors are ctx's and defects.
func (l *Limiter) Check(ctx context.Context, checks []Check) ([]Decision, bool, error) {
	if decisions, known := l.knownDenied(checks); known {
		return decisions, false, nil
	}
	started := time.Now()
	decisions, allowed, err := l.counted(ctx, opCheck, checks)
	if fault.CodeOf(err) == fault.StoreUnavailable {
		return l.fallback(ctx, checks)
	}
	if err != nil {
		return nil, false, err
	}
	if !allowed {
		l.remember(checks, decisions, started)
	}
	return decisions, allowed, nil
}

// Peek tells what Check would decide, and charges and writes nothing.
func (l *Limiter) Peek(ctx context.Context, c Check) (Decision, error) {
	return l.single(ctx, opPeek, c)
}

// Refund gives back what was charged, never above full.
func (l *Limiter) Refund(ctx context.Context, c Check) (Decision, error) {
	l.denied.forget(denyKey{c.Policy, c.Key})
	return l.single(ctx, opRefund, c)
}

func (l *Limiter) single(ctx context.Context, op operation, c Check) (Decision, error) {
	checks := []Check{c}
	decisions, _, err := l.counted(ctx, op, checks)
	if fault.CodeOf(err) == fault.StoreUnavailable {
		decisions, err = l.inMemory(ctx, op, checks)
	}
	if err != nil {
		return Decision{}, err
	}
	return decisions[0], nil
}

// Reset makes the key start afresh. Errors: store_unavailable.
func (l *Limiter) Reset(ctx context.Context, c Check) error {
	l.denied.forget(denyKey{c.Policy, c.Key})
	_ = l.memory.reset(ctx, c)
	return l.redis.reset(ctx, c)
}

// counted asks Redis about the checks that count; those of mode deny and allow are settled here.
func (l *Limiter) counted(ctx context.Context, op operation, checks []Check) ([]Decision, bool, error) {
	counting, barred := checks, false
	if slices.ContainsFunc(checks, settles) {
		counting = slices.DeleteFunc(slices.Clone(checks), settles)
		barred = slices.ContainsFunc(checks, func(c Check) bool { return c.Mode == policy.Deny })
	}
	if barred && op == opCheck {
		op = opPeek // nothing may be charged
	}
	found, allowed, err := l.bySlot(ctx, op, counting)
	if err != nil {
		return nil, false, err
	}
	decisions := make([]Decision, 0, len(checks))
	for _, c := range checks {
		if settles(c) {
			decisions = append(decisions, settled(c))
			continue
		}
		decisions = append(decisions, decide(c, found[0]))
		found = found[1:]
	}
	return decisions, allowed && !barred, nil
}

// settles tells whether the mode alone decides.
func settles(c Check) bool { return c.Mode == policy.Deny || c.Mode == policy.Allow }

// settled is the decision of a policy that always denies or always allows.
func settled(c Check) Decision {
	v := verdict{fits: c.Mode == policy.Allow, rules: make([]numbers, len(c.Rules))}
	for i, r := range c.Rules {
		v.rules[i] = numbers{remaining: r.Capacity()}
		if c.Mode == policy.Deny {
			v.rules[i] = numbers{retry: -1}
		}
	}
	d := decide(c, v)
	if c.Mode == policy.Deny {
		d.RetryAfterMS = nil
	}
	return d
}

// bySlot asks one slot after the other, and gives back what was charged when a later one denies or
// fails.
func (l *Limiter) bySlot(ctx context.Context, op operation, checks []Check) ([]verdict, bool, error) {
	switch len(checks) {
	case 0:
		return nil, true, nil
	case 1:
		return l.redis.decide(ctx, op, checks)
	}
	groups, order := l.group(checks)
	out := make([]verdict, len(checks))
	allowed := true
	var charged [][]int
	for _, slot := range order {
		members := groups[slot]
		found, ok, err := l.redis.decide(ctx, op, pick(checks, members))
		if err != nil {
			l.giveBack(ctx, checks, charged, out)
			return nil, false, err
		}
		for i, m := range members {
			out[m] = found[i]
		}
		switch {
		case !ok && allowed:
			allowed = false
			l.giveBack(ctx, checks, charged, out)
			op = opPeek
		case ok && op == opCheck:
			charged = append(charged, members)
		}
	}
	return out, allowed, nil
}

func (l *Limiter) group(checks []Check) (groups map[string][]int, order []string) {
	groups = make(map[string][]int)
	for i, c := range checks {
		slot := l.redis.slot(c)
		if groups[slot] == nil {
			order = append(order, slot)
		}
		groups[slot] = append(groups[slot], i)
	}
	return groups, order
}

func pick(checks []Check, members []int) []Check {
	out := make([]Check, len(members))
	for i, m := range members {
		out[i] = checks[m]
	}
	return out
}

// giveBack refunds on a context of its own; what cannot be given back now is given back by time.
func (l *Limiter) giveBack(ctx context.Context, checks []Check, charged [][]int, out []verdict) {
	ctx = context.WithoutCancel(ctx)
	for _, members := range charged {
		var refunds []Check
		var at []int
		for _, m := range members {
			if out[m].fits { // what a shadow policy would have denied was not charged
				refunds, at = append(refunds, checks[m]), append(at, m)
			}
		}
		if len(refunds) == 0 {
			continue
		}
		if found, _, err := l.redis.decide(ctx, opRefund, refunds); err == nil {
			for i, m := range at {
				out[m] = found[i]
			}
		}
	}
}
