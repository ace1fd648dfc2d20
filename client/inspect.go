package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// LockState is the state of a lock or semaphore. It contains no token.
type LockState struct {
	Name string `json:"name"`
	// Held reports whether the lock has a holder.
	Held bool `json:"held"`
	// Mode is the mode of the holders; "" if the lock is free.
	Mode    LockMode `json:"mode"`
	Holders []Holder `json:"holders"`
	// Waiters is the number of requests that wait for the lock.
	Waiters int `json:"waiters"`
}

// Holder is a holder of a lock or semaphore.
type Holder struct {
	// Owner is the label from [LockOptions.Owner].
	Owner      string    `json:"owner"`
	Fence      int64     `json:"fence"`
	AcquiredAt time.Time `json:"acquired_at"`
	// ExpiresAt is the time at which the lease ends if it is not renewed.
	ExpiresAt time.Time       `json:"expires_at"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// Inspect reads the holders of a lock. Pass the consistency with which the lock was acquired; ""
// means [ConsistencyRedis].
func (c *Client) Inspect(ctx context.Context, name string, at Consistency) (LockState, error) {
	return c.inspect(ctx, target{kind: locks, name: name}, at)
}

// ForceRelease releases a lock without its token, and returns the number of its holders. The
// holders' contexts end with [ErrForced] at their next renewal. The next holder gets a higher
// fence. After the next holder's first write, the resource refuses the old fences. For the
// consistency, see [Client.Inspect].
func (c *Client) ForceRelease(ctx context.Context, name string, at Consistency) (int, error) {
	return c.force(ctx, target{kind: locks, name: name}, at)
}

// ReleaseToken releases the lock that a token holds. Use it in a process that has the token but no
// [Lock]. For the consistency, see [Client.Inspect]. Errors: [ErrLockNotHeld].
func (c *Client) ReleaseToken(ctx context.Context, name, token string, at Consistency) error {
	t := target{kind: locks, name: name}
	if err := t.check("releasing " + t.String()); err != nil {
		return err
	}
	return c.release(ctx, t, LockOptions{Token: token, Consistency: at})
}

// Resume takes over a lock from a process that has detached it or has ended. It renews the lease,
// and never acquires a lock whose lease has ended. The options apply to the new holder.
//
// Errors: [ErrLockNotHeld], together with its reason: [ErrExpired], [ErrStolen] or [ErrForced].
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
	// A second request could release the lock of the next holder.
	_, err := c.do(ctx, call{op: op, method: "DELETE", path: t.path(), query: at.query(), out: &b, retry: retryUnsent})
	return b.Released, err
}

func (at Consistency) query() url.Values {
	if at == "" {
		return nil
	}
	return url.Values{"consistency": {string(at)}}
}
