package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/policy"
)

// buckets decides a check with the scripts for rules that are all buckets. It is not known when
// there is another rule, or when the script finds a state that it leaves to decide.lua.
func (e *Redis) buckets(ctx context.Context, c Check) (v verdict, known bool, err error) {
	args := make([]any, 0, 4*len(c.Rules)+1)
	states := make([]bucket, len(c.Rules))
	for i, r := range c.Rules {
		if r.Algorithm != policy.TokenBucket && r.Algorithm != policy.GCRA || r.Tick() != 1 {
			return verdict{}, false, nil
		}
		states[i].rule = ruleOf(r)
		w := states[i].w
		line := signature("", r)
		if len(c.Rules) == 1 {
			line = signature(" 0\n", r)
		}
		args = append(args, line, r.Limit, r.Capacity()*w, c.Cost*w)
	}
	if now := e.now(); now != "" {
		args = append(args, now)
	}
	script := bucketsScript
	if len(states) == 1 {
		script = bucketScript
	}
	reply, err := e.conn.Run(ctx, script, []string{stateKey(c)}, args...)
	if errors.Is(err, redis.Nil) {
		return verdict{}, false, nil
	}
	if err != nil {
		return verdict{}, false, err
	}
	switch debt := reply.(type) {
	case int64:
		states[0].used = debt
	case []any:
		if len(debt) != len(states) {
			return verdict{}, false, fmt.Errorf("buckets replied with %d debts, not %d", len(debt), len(states))
		}
		for i := range states {
			states[i].used, _ = debt[i].(int64)
		}
	default:
		return verdict{}, false, fmt.Errorf("unexpected reply of buckets: %v", reply)
	}
	return settle(states, c.Cost), true, nil
}

// settle charges the states when there is room in all of them, as the script did.
func settle(states []bucket, cost int64) verdict {
	v := verdict{fits: true, rules: make([]numbers, len(states))}
	for i := range states {
		v.fits = v.fits && states[i].wait(cost) == 0
	}
	for i := range states {
		s := &states[i]
		if v.fits {
			s.charge(cost)
		} else {
			v.rules[i].retry = s.wait(cost)
		}
		v.rules[i].remaining, v.rules[i].reset = s.remaining(), s.reset()
	}
	return v
}
