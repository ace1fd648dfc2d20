package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// LockState is a lock or semaphore as Inspect finds it. It never holds a token.
type LockState struct {
	Name    string   `json:"name"`
	Held    bool     `json:"held"`
	Mode    LockMode `json:"mode"` // "" when it is free
	Holders []Holder `json:"holders"`
	Waiters int      `json:"waiters"`
}

// Holder is who holds a lock.
type Holder struct {
	Owner      string          `json:"owner"`
	Fence      int64           `json:"fence"`
	AcquiredAt time.Time       `json:"acquired_at"`
	ExpiresAt  time.Time       `json:"expires_at"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

// Inspect reads who holds a lock. The consistency is that which it was taken with; "" is [ConsistencyRedis].
func (c *Client) Inspect(ctx context.Context, name string, at Consistency) (LockState, error) {
	return c.inspect(ctx, target{kind: locks, name: name}, at)
}

// ForceRelease takes a lock from everybody who holds it, and returns how many did. Their contexts
// end with [ErrForced] at their next renewal; the next fence is higher than theirs, so that the
// resource refuses them at once.
func (c *Client) ForceRelease(ctx context.Context, name string, at Consistency) (int, error) {
	return c.force(ctx, target{kind: locks, name: name}, at)
}

// ReleaseToken releases the lock that token holds, for a process that has only the token.
func (c *Client) ReleaseToken(ctx context.Context, name, token string, at Consistency) error {
	t := target{kind: locks, name: name}
	if err := t.check("releasing " + t.String()); err != nil {
		return err
	}
	return c.release(ctx, t, LockOptions{Token: token, Consistency: at})
}

// Resume takes over a lock that token holds, from another process that called [Lock.Detach] or
// ended: it renews the lease, and never takes a lock that has expired. The TTL and the other
// options are the new holder's.
//
// Errors: [ErrLockNotHeld], with the reason.
func (c *Client) Resume(ctx context.Context, name, token string, o LockOptions) (*Lock, error) {
	return c.resume(ctx, target{kind: locks, name: name}, token, o)
}

func (c *Client) resume(ctx context.Context, t target, token string, o LockOptions) (*Lock, error) {
	op := "resuming " + t.String()
	if err := t.check(op); err != nil {
		return nil, err
	}
	if token == "" {
		return nil, fields{{Field: "token", Message: "is required"}}.err(op)
	}
	o.Token = token
	o = o.withDefaults()
	if err := o.validate(op); err != nil {
		return nil, err
	}
	l, err := c.renew(ctx, t, o)
	if err != nil {
		return nil, err
	}
	l.reacquired = true
	return newLock(ctx, c, t, o, l), nil
}

func (c *Client) inspect(ctx context.Context, t target, at Consistency) (LockState, error) {
	var s LockState
	op := "inspecting " + t.String()
	if err := t.check(op); err != nil {
		return s, err
	}
	_, err := c.do(ctx, call{op: op, method: "GET", path: t.path(), query: at.query(), out: &s})
	return s, err
}

func (c *Client) force(ctx context.Context, t target, at Consistency) (int, error) {
	op := "releasing " + t.String() + " by force"
	if err := t.check(op); err != nil {
		return 0, err
	}
	var b struct {
		Released int `json:"released"`
	}
	// Done twice it could take the lock from the next holder.
	_, err := c.do(ctx, call{op: op, method: "DELETE", path: t.path(), query: at.query(), out: &b, repeat: unsent})
	return b.Released, err
}

func (at Consistency) query() url.Values {
	if at == "" {
		return nil
	}
	return url.Values{"consistency": {string(at)}}
}
