package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// maxWait is the maximum time that one request waits for the lock at the API.
	maxWait = 20 * time.Second
	// minWait is the minimum time until the deadline of the context. If less time remains, no
	// further request is sent.
	minWait = 20 * time.Millisecond
)

// Lock acquires a lock. If the lock is held, Lock waits until o.Wait has passed or ctx ends. The
// API grants the lock to waiting requests in the order of their arrival.
//
// The client renews the lease in the background until [Lock.Unlock]. The lock's context derives
// from ctx. When ctx ends, the lock's context ends too; the client renews the lease one last time
// and then lets it expire. To limit only the wait, set o.Wait.
//
// Errors: [ErrLockHeld], joined with the error of ctx if ctx ended the wait; [ErrStoreUnavailable],
// [ErrUnreachable], [ErrInvalidRequest], [ErrForbidden].
func (c *Client) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.acquire(ctx, target{kind: locks, name: name}, o, false)
}

// TryLock acquires a lock. It fails immediately if the lock is held or the store is unavailable.
// Errors: same as [Client.Lock].
func (c *Client) TryLock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.acquire(ctx, target{kind: locks, name: name}, o, true)
}

func (c *Client) acquire(ctx context.Context, t target, o LockOptions, try bool) (*Lock, error) {
	op := "acquiring " + t.String()
	a := &acquisition{client: c, target: t, op: op, o: o.withDefaults(), try: try, callersToken: o.Token != ""}
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
		c.background.Go(func() { a.release(context.WithoutCancel(ctx)) })
	}
	return lock, err
}

// acquisition is one call of Lock or TryLock. It sends one request, or several while it waits.
type acquisition struct {
	client       *Client
	target       target
	op           string
	o            LockOptions
	try          bool
	callersToken bool      // whether the caller chose the token
	deadline     time.Time // the end of o.Wait; the zero time means no limit

	refusal   error // the last [ErrLockHeld] of the API
	failures  int   // consecutive failed requests
	uncertain bool  // whether the API may have granted the lock to a request without an answer
}

func (a *acquisition) run(ctx context.Context) (*Lock, error) {
	for {
		wait, ok := a.nextWait(ctx)
		if !ok {
			return nil, a.waitEnded(ctx)
		}

		started := time.Now()
		l, err := a.request(ctx, wait)
		if err == nil {
			if err = a.refresh(ctx, &l); err == nil {
				return newLock(ctx, a.client, a.target, a.o, l), nil
			}
		}

		switch {
		case ctx.Err() != nil:
			return nil, a.waitEnded(ctx)
		case errors.Is(err, ErrLockHeld):
			a.refusal, a.failures = err, 0
			if a.try {
				return nil, err
			}
			throttle(ctx, wait, time.Since(started))
		default:
			a.failures++
			if !a.retry(ctx, err) {
				return nil, err
			}
		}
	}
}

// nextWait returns the time that the next request may wait at the API. It reports false if no time
// is left for another request.
//
// If ctx has a deadline, nextWait reserves a tenth of the remaining time, up to 500 ms, so that the
// last answer arrives before the deadline. The answer names the holder of the lock.
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
		if left < minWait && a.refusal != nil {
			<-ctx.Done()
		}
		wait = min(wait, max(0, left))
	}
	return wait, ctx.Err() == nil
}

// waitEnded returns the error of Lock after the wait has ended without a grant.
func (a *acquisition) waitEnded(ctx context.Context) error {
	if ctx.Err() == nil {
		return a.refusal
	}
	if a.refusal == nil {
		return fmt.Errorf("error %s: %w", a.op, ctx.Err())
	}
	return errors.Join(a.refusal, ctx.Err())
}

// retry pauses after a failure, and reports whether to send another request.
func (a *acquisition) retry(ctx context.Context, err error) bool {
	policy := retryIdempotent
	if a.try {
		policy = retryAvailable
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || a.failures > a.client.cfg.Retries {
		return false
	}
	expired := e.Is(ErrLockNotHeld) // the lease ended before refresh renewed it
	return (expired || policy.allows(e)) && pause(ctx, backoff(a.failures-1, e.RetryAfter))
}

// throttle pauses if a refusal arrived before half of the requested wait had passed. Without this
// pause, the loop in run would send one request after another.
func throttle(ctx context.Context, requested, took time.Duration) {
	if took < requested/2 {
		pause(ctx, min(requested/2, 100*time.Millisecond+rand.N(150*time.Millisecond)))
	}
}

// request sends one request. If ctx ends before the answer, the request continues in the
// background; if the API grants the lock, the client releases it.
func (a *acquisition) request(ctx context.Context, wait time.Duration) (lease, error) {
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
			// If the caller's own token held the lock before this request, the lock belongs to an
			// earlier call and must not be released here.
			others := a.callersToken && r.lease.reacquired
			if r.uncertain || r.err == nil && !others {
				a.release(detached)
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
			TTL:         a.o.TTL.Milliseconds(),
			Wait:        wait.Milliseconds(),
			Token:       a.o.Token,
			Owner:       a.o.Owner,
			Mode:        a.o.Mode,
			Metadata:    a.o.Metadata,
			Consistency: a.o.Consistency,
			Capacity:    a.target.capacity,
		},
	})
	return b.lease(a.o.TTL, r.started), r.uncertain, err
}

// release releases the lock that the API may have granted to an abandoned request.
func (a *acquisition) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.client.cfg.Timeout)
	defer cancel()
	_ = a.client.release(ctx, a.target, a.o) // if it fails, the lease expires
}

// refresh renews the lease if the request took more than a third of the TTL. The client measures
// the lease from the start of the request, so after a long wait little of the lease is left.
func (a *acquisition) refresh(ctx context.Context, l *lease) error {
	if time.Since(l.started) <= l.ttl/3 {
		return nil
	}
	a.uncertain = true // if the renewal fails, acquire releases the lock
	renewed, err := a.client.renew(ctx, a.target, a.o)
	if err != nil {
		return err
	}
	a.uncertain = false
	l.ttl, l.started = renewed.ttl, renewed.started
	return nil
}
