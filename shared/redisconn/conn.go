package redisconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// Conn runs scripts on one Redis deployment. It is safe for concurrent use; a process needs only
// one.
type Conn struct {
	client  redis.UniversalClient
	breaker *breaker
	timeout time.Duration
}

// Open makes a Conn. It does not connect: the first call does.
func Open(cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("error configuring redis: %w", err)
	}
	if len(options.Addrs) == 0 {
		return nil, errors.New("error configuring redis: no address")
	}
	return FromClient(redis.NewUniversalClient(options), cfg), nil
}

// FromClient makes a Conn from a client that the caller configured. It uses only the fields
// CallTimeout and Breaker of cfg. The client should not retry (MaxRetries: -1) and must respect
// contexts (ContextTimeoutEnabled: true); otherwise CallTimeout does not bound a call. [Conn.Close]
// closes the client.
func FromClient(client redis.UniversalClient, cfg Config) *Conn {
	cfg = cfg.withDefaults()

	ping := func(ctx context.Context) error { return client.Ping(ctx).Err() }
	return &Conn{client: client, breaker: newBreaker(cfg.Breaker, cfg.CallTimeout, ping), timeout: cfg.CallTimeout}
}

// Close closes every connection.
func (c *Conn) Close() error {
	if err := c.client.Close(); err != nil {
		return fmt.Errorf("error closing redis: %w", err)
	}
	return nil
}

// Client returns the driver's client, for blocking commands. Pass its errors to [Conn.Classify].
func (c *Conn) Client() redis.UniversalClient { return c.client }

// Run runs a script with EVALSHA, and with EVAL if the server does not have the script yet.
//
// It returns within the call timeout, and immediately while the circuit breaker is open. If Redis
// is unreachable, read-only, loading or out of memory, the error has the code
// fault.StoreUnavailable; if ctx ends first, the error wraps the error of ctx. A failed call may
// have taken effect if only its answer was lost: retry it only if the script is idempotent.
func (c *Conn) Run(ctx context.Context, script Script, keys []string, args ...any) (any, error) {
	var reply any
	err := c.Do(ctx, func(ctx context.Context) error {
		var err error
		reply, err = script.Run(ctx, c.client, keys, args...).Result()
		return locate(script, err)
	})
	return reply, err
}

// Do runs any short command with the deadline, the circuit breaker and the errors of [Conn.Run]. It
// returns redis.Nil unchanged.
func (c *Conn) Do(ctx context.Context, command func(context.Context) error) error {
	if err := c.breaker.admit(ctx); err != nil {
		return err
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.Classify(ctx, command(callCtx))
	c.breaker.record(ctx, err)
	return err
}

// Classify translates an error of the driver. It returns nil and redis.Nil unchanged. If ctx has
// ended, the result wraps the error of ctx; if Redis is unavailable, it has the code
// fault.StoreUnavailable; any other error is a defect and has no code.
func (c *Conn) Classify(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return err
	case ended(ctx) != nil:
		return fmt.Errorf("the caller's context ended during a redis call: %w", ended(ctx))
	case unavailable(err):
		return fault.Unavailable("redis", err)
	default:
		return refused(err)
	}
}

// ended returns the error of ctx if ctx has ended, and nil otherwise. It also compares the deadline
// with the clock, because the deadline of a socket may fire shortly before the timer of the
// context.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// BreakerOpen reports whether the circuit breaker is open. While it is open, calls fail without
// reaching Redis.
func (c *Conn) BreakerOpen() bool { return c.breaker.isOpen() }
