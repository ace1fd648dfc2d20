package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/policy"
)

// decideBuckets decides a charge whose rules are all buckets, with bucket.lua or buckets.lua.
// decided is false if these scripts do not support the rules or the state.
func (s *redisStore) decideBuckets(ctx context.Context, c charge) (v verdict, decided bool, err error) {
	buckets, args, ok := bucketArguments(c)
	if !ok {
		return verdict{}, false, nil
	}
	if now := s.clock(); now != "" {
		args = append(args, now)
	}
	script := bucketsScript
	if len(buckets) == 1 {
		script = bucketScript
	}

	reply, err := s.conn.Run(ctx, script, []string{stateKey(c)}, args...)
	if errors.Is(err, redis.Nil) {
		return verdict{}, false, nil
	}
	if err != nil {
		return verdict{}, false, err
	}
	if err := readDebts(buckets, reply); err != nil {
		return verdict{}, false, err
	}

	return chargeBuckets(buckets, c.cost), true, nil
}

// bucketArguments returns a bucket for each rule and the ARGV of the bucket scripts. ok is false if
// a rule is not a bucket or its tick is not 1 µs.
func bucketArguments(c charge) (buckets []bucket, args []any, ok bool) {
	args = make([]any, 0, 4*len(c.Rules)+1)
	buckets = make([]bucket, len(c.Rules))
	for i, r := range c.Rules {
		base := newRuleBase(r)
		if r.Algorithm != policy.TokenBucket && r.Algorithm != policy.GCRA || base.tick != 1 {
			return nil, nil, false
		}

		buckets[i].ruleBase = base
		prefix := ""
		if len(c.Rules) == 1 {
			prefix = " 0\n" // bucket.lua also compares the end of the state's first line
		}
		args = append(args, signature(prefix, r), r.Limit, r.Capacity()*base.ticks, c.cost*base.ticks)
	}

	return buckets, args, true
}

// readDebts reads a bucket script's reply: the debt of each bucket before the charge.
func readDebts(buckets []bucket, reply any) error {
	switch debts := reply.(type) {
	case int64:
		buckets[0].used = debts
	case []any:
		if len(debts) != len(buckets) {
			return fmt.Errorf("error reading the reply of buckets.lua: %d debts, want %d", len(debts), len(buckets))
		}
		for i := range buckets {
			buckets[i].used, _ = debts[i].(int64)
		}
	default:
		return fmt.Errorf("error reading the reply of a bucket script: unexpected %v", reply)
	}

	return nil
}

// chargeBuckets calculates the decision that the script has made: all buckets are charged if the
// cost fits in all of them.
func chargeBuckets(buckets []bucket, cost int64) verdict {
	v := verdict{fits: true, rules: make([]numbers, len(buckets))}
	for i := range buckets {
		v.fits = v.fits && buckets[i].wait(cost) == 0
	}
	for i := range buckets {
		b := &buckets[i]
		if v.fits {
			b.charge(cost)
		} else {
			v.rules[i].retry = b.wait(cost)
		}
		v.rules[i].remaining, v.rules[i].reset = b.remaining(), b.reset()
	}

	return v
}
