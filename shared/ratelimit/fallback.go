package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/sluicehq/sluice/shared/policy"
)

// outageRetry is the RetryAfter of a denial if Redis is unavailable and OnUnavailable is "deny".
const outageRetry = time.Second

// fallback decides each charge by its policy's OnUnavailable, while Redis is unavailable. As in
// Redis, if one of the charges is denied, none is applied.
func (l *Limiter) fallback(ctx context.Context, op operation, charges []charge) ([]Decision, bool, error) {
	denied := false
	local := make([]charge, 0, len(charges))
	for _, c := range charges {
		switch {
		case c.Mode == policy.Deny, c.Mode == policy.Enforce && c.OnUnavailable == policy.UnavailableDeny:
			denied = true
		case countsLocally(c):
			local = append(local, localShareOf(c))
		}
	}
	if denied && op == opCheck {
		op = opPeek
	}

	verdicts, fit, err := l.memory.decide(ctx, op, local)
	if err != nil {
		return nil, false, err
	}

	decisions := make([]Decision, len(charges))
	for i, c := range charges {
		switch {
		case countsLocally(c):
			decisions[i] = decide(local[0], verdicts[0])
			local, verdicts = local[1:], verdicts[1:]
		case decidedByMode(c):
			decisions[i] = modeDecision(c)
		default:
			decisions[i] = outageDecision(c)
		}
		decisions[i].Degraded = true
	}

	return decisions, fit && !denied, nil
}

func countsLocally(c charge) bool {
	return c.OnUnavailable == policy.UnavailableLocal && !decidedByMode(c)
}

// outageDecision returns the decision of a policy that allows or denies every check while Redis is
// unavailable. A policy in shadow mode always allows.
func outageDecision(c charge) Decision {
	as := c
	as.Mode = policy.Allow
	if c.OnUnavailable == policy.UnavailableDeny && c.Mode != policy.Shadow {
		as.Mode = policy.Deny
	}

	d := modeDecision(as)
	d.Mode = c.Mode
	if as.Mode == policy.Deny {
		d.RetryAfter = outageRetry
		for i := range d.Rules {
			d.Rules[i].RetryAfter = outageRetry
		}
	}

	return d
}

// localShareOf returns the charge with each limit and burst multiplied by LocalShare.
func localShareOf(c charge) charge {
	scaled := c
	scaled.Rules = make([]policy.Rule, len(c.Rules))
	for i, r := range c.Rules {
		scaled.Rules[i] = share(r, c.LocalShare)
	}

	return scaled
}

// share multiplies the limit and the burst of a rule by the given factor. It rounds the results
// down, but to at least 1.
func share(r policy.Rule, part float64) policy.Rule {
	scale := func(n int64) int64 { return max(1, int64(math.Floor(float64(n)*part))) }
	scaled := r
	scaled.Limit = scale(r.Limit)
	if r.Burst > 0 {
		scaled.Burst = scale(r.Burst)
	}

	return scaled
}
