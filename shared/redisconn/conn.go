package redisconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// Conn runs scripts on one Redis deployment. It is safe for concurrent use; a process needs one.
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

// FromClient makes a Conn from a client that the caller configured. Of cfg it uses CallTimeout and
// Breaker. The client should not retry (MaxRetries: -1) and must respect contexts
// (ContextTimeoutEnabled: true); otherwise CallTimeout does not bound a call. [Conn.Close] closes the
// client.
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

// Client is the driver itself, for blocking commands and INFO. Its errors go through
// [Conn.Classify].
func (c *Conn) Client() redis.UniversalClient { return c.client }

// Run runs one script: EVALSHA, and EVAL when the server does not have it yet.
//
// It answers within the call timeout, and at once while the circuit breaker is open. A store that
// cannot be reached, is read-only, loading or out of memory is a fault.StoreUnavailable; ctx's own
// end comes back as ctx's error. A call whose answer was lost may have been carried out: only send
// it again when the script is idempotent.
func (c *Conn) Run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	var reply any
	err := c.Do(ctx, func(ctx context.Context) error {
		var err error
		reply, err = script.Run(ctx, c.client, keys, args...).Result()
		return err
	})
	return reply, err
}

// Do gives any short command the deadline, breaker and error mapping of [Conn.Run]. redis.Nil
// passes through as it is.
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

// Classify maps a driver error: nil and redis.Nil stay, what ctx ended becomes ctx's error, an
// unavailable store becomes fault.StoreUnavailable, and anything else is a defect.
func (c *Conn) Classify(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return err
	case ended(ctx) != nil:
		return fmt.Errorf("redis call ended with its caller: %w", ended(ctx))
	case unavailable(err):
		return fault.Unavailable("redis", err)
	default:
		return fmt.Errorf("redis refused a call: %w", err)
	}
}

// ended is why ctx is over. A socket's deadline may fire a moment before the context's timer does,
// so the clock is asked too.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// BreakerOpen reports whether the circuit breaker is open: calls fail without reaching Redis.
func (c *Conn) BreakerOpen() bool { return c.breaker.isOpen() }
