package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// store holds the state of the rules. The same conformance tests run against every store.
type store interface {
	// decide decides all charges together. If an enforced charge does not fit, it charges nothing
	// and returns allowed as false.
	decide(ctx context.Context, op operation, charges []charge) (verdicts []verdict, allowed bool, err error)
	reset(ctx context.Context, c charge) error
}

// Limiter decides checks in Redis, and repeats recent denials from a cache in memory. While Redis
// is unavailable, the policy's OnUnavailable decides.
type Limiter struct {
	redis  *redisStore
	memory *memoryStore
	denied *denyCache
}

// New returns a limiter that stores its state in the Redis of conn. Until ctx ends, a goroutine
// receives the refunds and resets of other instances, and removes the cached denials of their keys.
func New(ctx context.Context, conn *redisconn.Conn) *Limiter {
	l := &Limiter{redis: newRedisStore(conn), memory: newMemoryStore(), denied: newDenyCache(time.Now)}
	go l.denied.subscribe(ctx, conn.Client())

	return l
}

// FromClient returns a limiter that uses the caller's own client of a single Redis node, a cluster
// or a failover group. Until ctx ends, a goroutine receives the refunds and resets of other
// instances, and removes the cached denials of their keys. The caller closes the client.
func FromClient(ctx context.Context, client redis.UniversalClient) *Limiter {
	return New(ctx, redisconn.FromClient(client, redisconn.Config{}))
}

// Check charges the cost of a check to all rules of its policy, or to none. A denial charges
// nothing and is not an error.
//
// While Redis is unavailable, the policy's OnUnavailable decides. Errors: [ErrInvalid]; the error
// of ctx.
func (l *Limiter) Check(ctx context.Context, check Check) (Decision, error) {
	c := check.charge()
	if d, denied := l.cachedDenial(&c); denied {
		return d, nil
	}
	if invalid := c.invalid(); len(invalid) > 0 {
		return Decision{}, invalid.Err()
	}

	began := time.Now()
	decisions, _, err := l.check(ctx, []charge{c})
	if err != nil {
		return Decision{}, err
	}
	l.remember(&c, decisions[0], began)

	return decisions[0], nil
}

// CheckAll charges 1 to [MaxChecks] checks, all or none, and reports whether all were allowed. If
// one is denied, each of the other decisions shows the result of its check alone.
//
// In a Redis cluster, CheckAll charges the checks of one hash slot after the other. If a check is
// denied, CheckAll refunds the charges in the earlier slots. Each such charge exists for at most
// one round trip per slot. During this time, other callers can be denied because of it.
//
// While Redis is unavailable, each policy's OnUnavailable decides. Errors: [ErrInvalid], with
// fields such as "checks[2].key"; the error of ctx.
func (l *Limiter) CheckAll(ctx context.Context, checks []Check) (decisions []Decision, allowed bool, err error) {
	charges := make([]charge, len(checks))
	for i := range checks {
		charges[i] = checks[i].charge()
	}
	if err := validateAll(len(charges), func(i int) fault.Fields { return charges[i].invalid() }); err != nil {
		return nil, false, err
	}

	return l.check(ctx, charges)
}

// check decides in Redis or, if Redis is unavailable, by each policy's OnUnavailable.
func (l *Limiter) check(ctx context.Context, charges []charge) ([]Decision, bool, error) {
	decisions, allowed, err := l.decideInRedis(ctx, opCheck, charges)
	if errors.Is(err, ErrUnavailable) {
		return l.fallback(ctx, opCheck, charges)
	}

	return decisions, allowed, err
}

// Peek returns the decision that Check would return, but charges and writes nothing. Errors:
// [ErrInvalid]; the error of ctx.
func (l *Limiter) Peek(ctx context.Context, check Check) (Decision, error) {
	return l.single(ctx, opPeek, check)
}

// Refund removes check.Cost units from the charges of every rule, starting with the newest charge.
// If a rule has fewer units charged, Refund removes all of them. While Redis is unavailable, it
// refunds only charges in this instance's memory. Errors: [ErrInvalid]; the error of ctx.
func (l *Limiter) Refund(ctx context.Context, check Check) (Decision, error) {
	l.denied.forget(denyKey{check.Policy.Name, check.Key})

	return l.single(ctx, opRefund, check)
}

func (l *Limiter) single(ctx context.Context, op operation, check Check) (Decision, error) {
	c := check.charge()
	if invalid := c.invalid(); len(invalid) > 0 {
		return Decision{}, invalid.Err()
	}

	charges := []charge{c}
	decisions, _, err := l.decideInRedis(ctx, op, charges)
	if errors.Is(err, ErrUnavailable) {
		decisions, _, err = l.fallback(ctx, op, charges)
	}
	if err != nil {
		return Decision{}, err
	}

	return decisions[0], nil
}

// Reset removes every charge to check.Key under check.Policy. Errors: [ErrInvalid],
// [ErrUnavailable]; the error of ctx.
func (l *Limiter) Reset(ctx context.Context, check Check) error {
	c := check.charge()
	if invalid := c.invalid(); len(invalid) > 0 {
		return invalid.Err()
	}
	l.denied.forget(denyKey{c.policy, c.key})
	_ = l.memory.reset(ctx, c)

	return l.redis.reset(ctx, c)
}
