package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// maxWait is the longest wait of one request.
	maxWait = 20 * time.Second
	// lastWait is the shortest wait that is worth another request before a context's deadline.
	lastWait = 20 * time.Millisecond
)

// Lock takes a lock, waiting for it in the order of arrival until o.Wait is over or ctx ends.
//
// The lock is renewed in the background until [Lock.Unlock]. Its context derives from ctx: when ctx
// ends, so does the lock's context, and the lease is extended once more and then left to run out.
// To bound only the wait, use o.Wait.
//
// Errors: [ErrLockHeld], joined with ctx's error when ctx ended the wait; [ErrStoreUnavailable],
// [ErrUnreachable], [ErrInvalidRequest], [ErrForbidden].
func (c *Client) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.acquire(ctx, target{kind: locks, name: name}, o, false)
}

// TryLock is Lock without waiting; it also fails at once when the store is unavailable.
func (c *Client) TryLock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.acquire(ctx, target{kind: locks, name: name}, o, true)
}

func (c *Client) acquire(ctx context.Context, t target, o LockOptions, try bool) (*Lock, error) {
	op := "acquiring " + t.String()
	a := &acquisition{client: c, target: t, op: op, o: o.withDefaults(), try: try, ownToken: o.Token != ""}
	if err := t.check(op); err != nil {
		return nil, err
	}
	if err := a.o.validate(op); err != nil {
		return nil, err
	}
	if o.Wait > 0 {
		a.deadline = time.Now().Add(o.Wait)
	}
	lock, err := a.run(ctx)
	if err != nil && a.uncertain {
		c.background.Go(func() { a.giveBack(context.WithoutCancel(ctx)) })
	}
	return lock, err
}

// acquisition is one call of Lock: one request, or several while it waits.
type acquisition struct {
	client   *Client
	target   target
	op       string
	o        LockOptions
	try      bool
	ownToken bool
	deadline time.Time // of o.Wait; zero is none

	refusal   error // the last answer that somebody else holds it
	failures  int   // in a row
	uncertain bool  // a request that got no answer may have been granted
}

func (a *acquisition) run(ctx context.Context) (*Lock, error) {
	for {
		wait, more := a.nextWait(ctx)
		if !more {
			return nil, a.over(ctx)
		}
		started := time.Now()
		l, err := a.ask(ctx, wait)
		if err == nil {
			if err = a.refresh(ctx, &l); err == nil {
				return newLock(ctx, a.client, a.target, a.o, l), nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, a.over(ctx)
		case errors.Is(err, ErrLockHeld):
			a.refusal, a.failures = err, 0
			if a.try {
				return nil, err
			}
			unhurried(ctx, wait, time.Since(started))
		default:
			if a.failures++; !a.mayGoOn(ctx, err) {
				return nil, err
			}
		}
	}
}

// nextWait is how long the next request may wait at the store, or false when there is no time for
// one.
//
// Before a context's deadline some time is left for the answer, so that it still says who holds the
// lock.
func (a *acquisition) nextWait(ctx context.Context) (time.Duration, bool) {
	if a.try {
		return 0, ctx.Err() == nil
	}
	wait := maxWait
	if !a.deadline.IsZero() {
		left := time.Until(a.deadline)
		if left < time.Millisecond && a.refusal != nil {
			return 0, false
		}
		wait = min(wait, max(0, left))
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		left -= min(left/10, 500*time.Millisecond)
		if left < lastWait && a.refusal != nil {
			<-ctx.Done()
		}
		wait = min(wait, max(0, left))
	}
	return wait, ctx.Err() == nil
}

// over is the error of a wait that has ended.
func (a *acquisition) over(ctx context.Context) error {
	if ctx.Err() == nil {
		return a.refusal
	}
	if a.refusal == nil {
		return fmt.Errorf("error %s: %w", a.op, ctx.Err())
	}
	return errors.Join(a.refusal, ctx.Err())
}

// mayGoOn decides whether a failure is worth another request, and waits before it.
func (a *acquisition) mayGoOn(ctx context.Context, err error) bool {
	policy := always
	if a.try {
		policy = lost
	}
	var e *Error
	if !errors.As(err, &e) || a.failures > a.client.cfg.Retries {
		return false
	}
	again := policy.allows(e) || e.Is(ErrLockNotHeld) // it ended while its answer was on the way
	return again && pause(ctx, backoff(a.failures-1, e.RetryAfter))
}

// unhurried keeps a refusal that came sooner than the wait that was asked for from turning into a
// busy loop.
func unhurried(ctx context.Context, asked, took time.Duration) {
	if took < asked/2 {
		pause(ctx, min(asked/2, 100*time.Millisecond+rand.N(150*time.Millisecond)))
	}
}

// ask sends one request. When ctx ends before the answer, the request is seen to its end in the
// background: the lock may still be granted, and is given back then.
func (a *acquisition) ask(ctx context.Context, wait time.Duration) (lease, error) {
	type answer struct {
		lease     lease
		uncertain bool
		err       error
	}
	answered := make(chan answer, 1)
	detached := context.WithoutCancel(ctx)
	a.client.background.Go(func() {
		var r answer
		r.lease, r.uncertain, r.err = a.send(detached, wait)
		answered <- r
	})
	select {
	case r := <-answered:
		a.uncertain = a.uncertain || r.uncertain
		return r.lease, r.err
	case <-ctx.Done():
		a.client.background.Go(func() {
			r := <-answered
			another := a.ownToken && r.lease.reacquired // what the token held before is left to whoever took it
			if r.uncertain || r.err == nil && !another {
				a.giveBack(detached)
			}
		})
		return lease{}, ctx.Err()
	}
}

func (a *acquisition) send(ctx context.Context, wait time.Duration) (lease, bool, error) {
	var b leaseBody
	r, err := a.client.once(ctx, call{
		op: a.op, method: "POST", path: a.target.path("acquire"), out: &b, timeout: wait + a.client.cfg.Timeout,
		body: acquireBody{
			TTL: a.o.TTL.Milliseconds(), Wait: wait.Milliseconds(), Token: a.o.Token, Owner: a.o.Owner, Mode: a.o.Mode,
			Metadata:    a.o.Metadata,
			Consistency: a.o.Consistency, Capacity: a.target.capacity,
		},
	})
	return b.lease(a.o.TTL, r.started), r.uncertain, err
}

// giveBack releases what an abandoned request may have got, on a context of its own.
func (a *acquisition) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.client.cfg.Timeout)
	defer cancel()
	_ = a.client.release(ctx, a.target, a.o) // what cannot be released ends with its TTL
}

// refresh renews a lease that was granted after a long wait, since it counts from the start of its
// request.
func (a *acquisition) refresh(ctx context.Context, l *lease) error {
	if time.Since(l.started) <= l.ttl/3 {
		return nil
	}
	a.uncertain = true // until it is renewed, it may be held by nobody
	renewed, err := a.client.renew(ctx, a.target, a.o)
	if err != nil {
		return err
	}
	a.uncertain = false
	l.ttl, l.started = renewed.ttl, renewed.started
	return nil
}
