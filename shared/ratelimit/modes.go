package ratelimit

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/shared/policy"
)

// decidedByMode reports whether the mode is deny or allow. These modes count nothing.
func decidedByMode(c charge) bool { return c.Mode == policy.Deny || c.Mode == policy.Allow }

// modeDecision returns the decision of a policy that denies or allows every check.
func modeDecision(c charge) Decision {
	v := verdict{fits: c.Mode == policy.Allow, rules: make([]numbers, len(c.Rules))}
	for i, r := range c.Rules {
		v.rules[i] = numbers{remaining: r.Capacity()}
		if c.Mode == policy.Deny {
			v.rules[i] = numbers{retry: never}
		}
	}

	return decide(c, v)
}

// decideInRedis decides charges. It calls Redis for all charges except those in mode deny or allow.
func (l *Limiter) decideInRedis(ctx context.Context, op operation, charges []charge) ([]Decision, bool, error) {
	counting, denied := charges, false
	if slices.ContainsFunc(charges, decidedByMode) {
		counting = slices.DeleteFunc(slices.Clone(charges), decidedByMode)
		denied = slices.ContainsFunc(charges, func(c charge) bool { return c.Mode == policy.Deny })
	}
	if denied && op == opCheck {
		op = opPeek // mode deny denies the whole call, and a denied call charges nothing
	}

	verdicts, allowed, err := l.decideBySlot(ctx, op, counting)
	if err != nil {
		return nil, false, err
	}

	decisions := make([]Decision, 0, len(charges))
	for _, c := range charges {
		if decidedByMode(c) {
			decisions = append(decisions, modeDecision(c))
			continue
		}
		decisions = append(decisions, decide(c, verdicts[0]))
		verdicts = verdicts[1:]
	}

	return decisions, allowed && !denied, nil
}
