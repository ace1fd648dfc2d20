package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// minAttempt is the minimum timeout of one attempt to renew, unless the lease ends earlier.
const minAttempt = 250 * time.Millisecond

// keep renews the lease after each third of its TTL, until ctx ends or the lock is lost.
//
// When the parent context ends, keep renews the lease once more and returns. The caller then has a
// full TTL for its cleanup, and a lock that is never unlocked expires.
func (l *Lock) keep(ctx context.Context) {
	defer close(l.stopped)
	for {
		switch l.awaitRenewal(ctx) {
		case renewalStopped:
			return
		case renewalLast:
			l.extend(ctx)
			return
		case renewalDue:
			if !l.extend(ctx) {
				return
			}
		}
	}
}

// renewalEvent is the reason why the wait for the next renewal ended.
type renewalEvent int

const (
	renewalDue     renewalEvent = iota // a third of the TTL has passed
	renewalLast                        // the parent context has ended
	renewalStopped                     // the lock was unlocked, detached or lost
)

// awaitRenewal waits until the next renewal is due. It ends the lock when MaxHold is reached.
func (l *Lock) awaitRenewal(ctx context.Context) renewalEvent {
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
		return renewalStopped
	case <-l.parent.Done():
		return renewalLast
	case <-timer.C:
	}

	if maxHold {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lost == nil {
			l.lose(fmt.Errorf("%w, %s", ErrMaxHold, l.o.MaxHold))
		}
		return renewalStopped
	}
	return renewalDue
}

// extend renews the lease. It retries until the renewal succeeds or is refused, or the lease has
// ended. It reports false if the lock was lost, unlocked or detached. If the lease expires in the
// meantime, the timer l.expiry ends the lock's context.
func (l *Lock) extend(ctx context.Context) bool {
	for failures := 0; ; failures++ {
		left := time.Until(l.ValidUntil())
		timeout := min(max(l.o.TTL/4, minAttempt), left, l.client.cfg.Timeout)
		renewed, err := l.client.renewOnce(ctx, l.target, l.o, timeout)
		if ctx.Err() != nil {
			return false
		}
		if outcome := l.apply(renewed, err); outcome != renewalFailed {
			return outcome == renewalGranted
		}

		wait := 50*time.Millisecond<<min(failures, 5) + rand.N(50*time.Millisecond)
		if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.RetryAfter)
		}
		// Wait at most a third of the remaining lease, so that several attempts fit, and at least
		// 1/50 of the TTL, so that few attempts are sent at the end of the lease.
		wait = max(min(wait, time.Until(l.ValidUntil())/3), l.o.TTL/50)
		if !pause(ctx, wait) {
			return false
		}
	}
}

// renewalOutcome is the effect of one attempt to renew.
type renewalOutcome int

const (
	renewalFailed  renewalOutcome = iota // may be retried
	renewalGranted                       // the lease is extended
	renewalLost                          // the lock is lost
)

// apply updates the lock with the result of one attempt to renew.
func (l *Lock) apply(renewed lease, err error) renewalOutcome {
	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case l.lost != nil: // the answer is too late: the lock is already lost
		return renewalLost
	case errors.Is(err, ErrLockNotHeld):
		l.lose(err)
		return renewalLost
	case err != nil:
		l.failure = err
		if !time.Now().Before(l.lease.until()) {
			return renewalLost // the timer is about to record the loss
		}
		return renewalFailed
	case renewed.fence != l.fence:
		l.lose(fmt.Errorf("%w: its fence is %d", ErrStolen, renewed.fence))
		return renewalLost
	}

	l.failure = nil
	l.lease.started, l.lease.ttl = renewed.started, renewed.ttl
	l.expiry.Reset(time.Until(l.trusted()))
	return renewalGranted
}

// renewal returns the call that extends a lease. It never acquires a lock, so it can be retried.
func renewal(t target, o LockOptions, out *leaseBody) call {
	return call{
		op: "renewing " + t.String(), method: "POST", path: t.path("renew"), out: out,
		body: heldBody{Token: o.Token, TTL: o.TTL.Milliseconds(), Consistency: o.Consistency},
	}
}

// renew extends a lease. It retries up to Config.Retries times.
func (c *Client) renew(ctx context.Context, t target, o LockOptions) (lease, error) {
	var b leaseBody
	r, err := c.do(ctx, renewal(t, o, &b))
	return b.lease(o.TTL, r.started), err
}

// renewOnce extends a lease, in one attempt of up to timeout.
func (c *Client) renewOnce(ctx context.Context, t target, o LockOptions, timeout time.Duration) (lease, error) {
	var b leaseBody
	q := renewal(t, o, &b)
	q.timeout = max(timeout, time.Millisecond) // zero would mean Config.Timeout
	r, err := c.once(ctx, q)
	return b.lease(o.TTL, r.started), err
}

// release releases a lock. If an earlier attempt may have released the lock, the answer "not held"
// is a success.
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
