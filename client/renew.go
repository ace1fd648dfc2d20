package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// minAttempt is the least time that one attempt to renew is given, if the lease lasts as long.
const minAttempt = 250 * time.Millisecond

// keep renews the lease each third of its TTL until ctx ends or the lock is lost. When the parent
// context ends it renews once more, so that whoever cleans up has a full TTL, and stops: a lock
// that nobody unlocks is not kept for ever.
func (l *Lock) keep(ctx context.Context) {
	defer close(l.stopped)
	for {
		last, more := l.rest(ctx)
		if !more || !l.extend(ctx) || last {
			return
		}
	}
}

// rest waits until the next renewal is due; last says that it is the last one.
func (l *Lock) rest(ctx context.Context) (last, more bool) {
	l.mu.Lock()
	due := l.lease.started.Add(l.lease.ttl / 3)
	l.mu.Unlock()
	maxHold := !l.ends.IsZero() && l.ends.Before(due)
	if maxHold {
		due = l.ends
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true, false
	case <-l.parent.Done():
		return true, true
	case <-timer.C:
	}
	if maxHold {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lost == nil {
			l.lose(fmt.Errorf("%w, %s", ErrMaxHold, l.o.MaxHold))
		}
		return true, false
	}
	return false, true
}

// extend renews the lease, and tries again until that succeeds, is refused, or the lease can no
// longer be trusted; the timer that ends the context runs beside it. It reports false when the lock
// is lost or given up.
func (l *Lock) extend(ctx context.Context) bool {
	for failures := 0; ; failures++ {
		left := time.Until(l.ValidUntil())
		renewed, err := l.client.renewOnce(ctx, l.target, l.o,
			min(max(l.o.TTL/4, minAttempt), left, l.client.cfg.Timeout))
		if ctx.Err() != nil {
			return false
		}
		if held, settled := l.settle(renewed, err); settled {
			return held
		}
		wait := 50*time.Millisecond<<min(failures, 5) + rand.N(50*time.Millisecond)
		if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.RetryAfter)
		}
		// Several attempts fit into what is left, but not a storm of them at its end.
		if !pause(ctx, max(min(wait, time.Until(l.ValidUntil())/3), l.o.TTL/50)) {
			return false
		}
	}
}

// settle takes the answer of a renewal in. It is not settled when the renewal may be tried again.
func (l *Lock) settle(renewed lease, err error) (held, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil: // the answer came too late: what is lost stays lost
		return false, true
	case err == nil && renewed.fence != l.fence:
		l.lose(fmt.Errorf("%w: its fence is %d", ErrStolen, renewed.fence))
	case err == nil:
		l.failure = nil
		l.lease.started, l.lease.ttl = renewed.started, renewed.ttl
		l.expiry.Reset(time.Until(l.trusted()))
		return true, true
	case errors.Is(err, ErrLockNotHeld):
		l.lose(err)
	default:
		l.failure = err
		return false, !time.Now().Before(l.lease.until())
	}
	return false, true
}

// renewal is the call that extends a lease. It is never a new acquisition, and may be repeated.
func renewal(t target, o LockOptions, out *leaseBody) call {
	return call{
		op: "renewing " + t.String(), method: "POST", path: t.path("renew"), out: out,
		body: heldBody{Token: o.Token, TTL: o.TTL.Milliseconds(), Consistency: o.Consistency},
	}
}

// renew extends a lease, and repeats that as the client's Retries allow.
func (c *Client) renew(ctx context.Context, t target, o LockOptions) (lease, error) {
	var b leaseBody
	r, err := c.do(ctx, renewal(t, o, &b))
	return b.lease(o.TTL, r.started), err
}

// renewOnce is one attempt of no more than timeout.
func (c *Client) renewOnce(ctx context.Context, t target, o LockOptions, timeout time.Duration) (lease, error) {
	var b leaseBody
	q := renewal(t, o, &b)
	q.timeout = max(timeout, time.Millisecond) // zero would be the client's
	r, err := c.once(ctx, q)
	return b.lease(o.TTL, r.started), err
}

// release gives a lock back. Asked again after a lost answer, "not held" is what it was to achieve.
func (c *Client) release(ctx context.Context, t target, o LockOptions) error {
	r, err := c.do(ctx, call{
		op: "releasing " + t.String(), method: "POST", path: t.path("release"),
		timeout: max(c.cfg.Timeout/3, time.Second),
		body:    heldBody{Token: o.Token, Consistency: o.Consistency},
	})
	if r.uncertain && errors.Is(err, ErrLockNotHeld) && !errors.Is(err, ErrForced) {
		return nil
	}
	return err
}
