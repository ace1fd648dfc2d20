package ratelimit

import (
	"context"

	"github.com/sluicehq/sluice/shared/policy"
)

// fallback decides while Redis is away. Every check keeps to its policy's OnUnavailable; as ever,
// one denial charges nothing.
func (l *Limiter) fallback(ctx context.Context, checks []Check) ([]Decision, bool, error) {
	allowed := true
	local := make([]Check, 0, len(checks))
	for _, c := range checks {
		switch {
		case c.Mode == policy.Deny, c.Mode == policy.Enforce && c.OnUnavailable == policy.UnavailableDeny:
			allowed = false
		case c.Mode != policy.Allow && c.OnUnavailable == policy.UnavailableLocal:
			local = append(local, scaled(c))
		}
	}
	op := opCheck
	if !allowed {
		op = opPeek
	}
	found, fit, err := l.memory.decide(ctx, op, local)
	if err != nil {
		return nil, false, err
	}
	decisions := make([]Decision, 0, len(checks))
	for _, c := range checks {
		var d Decision
		switch {
		case c.Mode == policy.Deny || c.Mode == policy.Allow:
			d = settled(c)
		case c.OnUnavailable == policy.UnavailableLocal:
			d = decide(scaled(c), found[0])
			found = found[1:]
		default:
			d = blind(c)
		}
		d.Degraded = true
		decisions = append(decisions, d)
	}
	return decisions, allowed && fit, nil
}

// inMemory answers a peek or a refund while Redis is away.
func (l *Limiter) inMemory(ctx context.Context, op operation, checks []Check) ([]Decision, error) {
	found, _, err := l.memory.decide(ctx, op, []Check{scaled(checks[0])})
	if err != nil {
		return nil, err
	}
	d := decide(scaled(checks[0]), found[0])
	if checks[0].Mode == policy.Deny || checks[0].Mode == policy.Allow {
		d = settled(checks[0])
	} else if checks[0].OnUnavailable != policy.UnavailableLocal {
		d = blind(checks[0])
	}
	d.Degraded = true
	return []Decision{d}, nil
}

// blind is the decision of a policy that lets everything or nothing pass while nobody counts.
func blind(c Check) Decision {
	as := c
	as.Mode = policy.Allow
	if c.OnUnavailable == policy.UnavailableDeny && c.Mode != policy.Shadow {
		as.Mode = policy.Deny
	}
	d := settled(as)
	d.Mode = c.Mode
	if as.Mode == policy.Deny { // the outage ends some time: to come back soon may help
		soon := int64(1000)
		d.RetryAfterMS = &soon
		for i := range d.Rules {
			d.Rules[i].RetryAfterMS = &soon
		}
	}
	return d
}

// scaled is the check with each limit cut to the instance's share.
func scaled(c Check) Check {
	s := c
	s.Rules = make([]policy.Rule, len(c.Rules))
	for i, r := range c.Rules {
		s.Rules[i] = share(r, c.LocalShare)
	}
	return s
}
