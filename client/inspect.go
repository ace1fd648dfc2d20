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
	// Mode is the mode of the holders; "" if there is none.
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
	// ExpiresAt is when the lease ends unless it is renewed.
	ExpiresAt time.Time       `json:"expires_at"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// Inspect reads the holders of a lock. The consistency is that with which the lock was acquired; ""
// means [ConsistencyRedis].
func (c *Client) Inspect(ctx context.Context, name string, at Consistency) (LockState, error) {
	return c.inspect(ctx, target{kind: locks, name: name}, at)
}

// ForceRelease releases a lock without its token, and returns how many holders it had. Their
// contexts end with [ErrForced] at the next renewal. The fence of the next holder is higher, so
// that the resource refuses theirs immediately. The consistency is that of [Client.Inspect].
func (c *Client) ForceRelease(ctx context.Context, name string, at Consistency) (int, error) {
	return c.force(ctx, target{kind: locks, name: name}, at)
}

// ReleaseToken releases the lock that a token holds, for a process that has only the token. The
// consistency is that of [Client.Inspect]. Errors: [ErrLockNotHeld].
func (c *Client) ReleaseToken(ctx context.Context, name, token string, at Consistency) error {
	t := target{kind: locks, name: name}
	if err := t.check("releasing " + t.String()); err != nil {
		return err
	}
	return c.release(ctx, t, LockOptions{Token: token, Consistency: at})
}

// Resume continues to hold a lock that another process acquired and then detached, or held when it
// ended. It renews the lease, and never acquires a lock whose lease has ended. The options are
// those of the new holder.
//
// Errors: [ErrLockNotHeld], which also matches the reason: [ErrExpired], [ErrStolen] or
// [ErrForced].
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
