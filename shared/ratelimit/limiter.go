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
	// decide decides all charges together: if an enforced one does not fit, none is charged and
	// allowed is false.
	decide(ctx context.Context, op operation, charges []charge) (verdicts []verdict, allowed bool, err error)
	reset(ctx context.Context, c charge) error
}

// Limiter decides checks in Redis. A cache of denials answers before Redis, and the policy's
// OnUnavailable decides while Redis is unavailable.
type Limiter struct {
	redis  *redisStore
	memory *memoryStore
	denied *denyCache
}

// New returns a limiter whose state is in the Redis of conn. Until ctx ends, a goroutine subscribes
// to the refunds and resets of other instances.
func New(ctx context.Context, conn *redisconn.Conn) *Limiter {
	l := &Limiter{redis: newRedisStore(conn), memory: newMemoryStore(), denied: newDenyCache(time.Now)}
	go l.denied.subscribe(ctx, conn.Client())

	return l
}

// FromClient returns a limiter whose state is in the Redis of the caller's own client: a single
// node, a cluster or a failover group. Until ctx ends, a goroutine subscribes to the refunds and
// resets of other instances. Closing the client remains the caller's task.
func FromClient(ctx context.Context, client redis.UniversalClient) *Limiter {
	return New(ctx, redisconn.FromClient(client, redisconn.Config{}))
}

// Check charges the rules of a check, all or none. A denial charges nothing and is not an error.
//
// While Redis is unavailable the policy's OnUnavailable decides. Errors: [ErrInvalid]; the error of
// ctx.
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
// one is denied, the other decisions show what each check would have received alone.
//
// In a Redis cluster, checks whose keys are in different hash slots are charged one slot after the
// other, and refunded if a later slot denies. For that time, at most one more round trip per slot,
// other callers may be denied because of the charges that are refunded afterwards.
//
// While Redis is unavailable each policy's OnUnavailable decides. Errors: [ErrInvalid], with fields
// such as "checks[2].key"; the error of ctx.
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

// check decides in Redis or, if it is unavailable, by each policy's OnUnavailable.
func (l *Limiter) check(ctx context.Context, charges []charge) ([]Decision, bool, error) {
	decisions, allowed, err := l.decideInRedis(ctx, opCheck, charges)
	if errors.Is(err, ErrUnavailable) {
		return l.fallback(ctx, opCheck, charges)
	}

	return decisions, allowed, err
}

// Peek returns the decision that Check would make. It charges and writes nothing. Errors:
// [ErrInvalid]; the error of ctx.
func (l *Limiter) Peek(ctx context.Context, check Check) (Decision, error) {
	return l.single(ctx, opPeek, check)
}

// Refund returns cost units to every rule, up to its capacity, newest charges first. While Redis is
// unavailable it refunds the instance's own count. Errors: [ErrInvalid]; the error of ctx.
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

// Reset removes every charge of the key. Errors: [ErrInvalid], [ErrUnavailable]; the error of ctx.
func (l *Limiter) Reset(ctx context.Context, check Check) error {
	c := check.charge()
	if invalid := c.invalid(); len(invalid) > 0 {
		return invalid.Err()
	}
	l.denied.forget(denyKey{c.policy, c.key})
	_ = l.memory.reset(ctx, c)

	return l.redis.reset(ctx, c)
}
