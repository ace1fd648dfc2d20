package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// maxWait is the longest wait of one request at the API.
	maxWait = 20 * time.Second
	// minWait is the shortest time before the deadline of a context for which another request is
	// worthwhile.
	minWait = 20 * time.Millisecond
)

// Lock acquires a lock. It waits for the lock, in the order of arrival, until o.Wait has passed or
// ctx ends.
//
// The client renews the lease in the background until [Lock.Unlock]. The lock's context derives
// from ctx: when ctx ends, so does the lock's context, and the client renews the lease once more
// and then lets it expire. To bound only the wait, use o.Wait.
//
// Errors: [ErrLockHeld], joined with the error of ctx if that ended the wait;
// [ErrStoreUnavailable], [ErrUnreachable], [ErrInvalidRequest], [ErrForbidden].
func (c *Client) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.acquire(ctx, target{kind: locks, name: name}, o, false)
}

// TryLock acquires a lock without waiting, neither for its holder nor for an unavailable store.
// Errors: those of [Client.Lock].
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

// acquisition is one call of Lock or TryLock: one request, or several while it waits.
type acquisition struct {
	client       *Client
	target       target
	op           string
	o            LockOptions
	try          bool
	callersToken bool      // whether the caller chose the token
	deadline     time.Time // of o.Wait; the zero time means none

	refusal   error // the last answer that the lock is held
	failures  int   // in succession
	uncertain bool  // whether a request without an answer may have been granted
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

// nextWait returns how long the next request may wait at the API. It reports false if there is no
// time for another request.
//
// Before the deadline of a context it reserves time for the answer, which names the holder of the
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
		if left < minWait && a.refusal != nil {
			<-ctx.Done()
		}
		wait = min(wait, max(0, left))
	}
	return wait, ctx.Err() == nil
}

// waitEnded returns the error of a wait that has ended.
func (a *acquisition) waitEnded(ctx context.Context) error {
	if ctx.Err() == nil {
		return a.refusal
	}
	if a.refusal == nil {
		return fmt.Errorf("error %s: %w", a.op, ctx.Err())
	}
	return errors.Join(a.refusal, ctx.Err())
}

// retry reports whether to send another request after a failure, and pauses before.
func (a *acquisition) retry(ctx context.Context, err error) bool {
	policy := retryIdempotent
	if a.try {
		policy = retryAvailable
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || a.failures > a.client.cfg.Retries {
		return false
	}
	expired := e.Is(ErrLockNotHeld) // the lease ended before the answer to its request arrived
	return (expired || policy.allows(e)) && pause(ctx, backoff(a.failures-1, e.RetryAfter))
}

// throttle pauses after a refusal that arrived earlier than the requested wait, so that the loop
// does not spin.
func throttle(ctx context.Context, requested, took time.Duration) {
	if took < requested/2 {
		pause(ctx, min(requested/2, 100*time.Millisecond+rand.N(150*time.Millisecond)))
	}
}

// request sends one request. If ctx ends before the answer, the request continues in the
// background, and a lock that it is granted is released.
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
			// If the caller's token held the lock before, another call is responsible for it.
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

// release releases the lock that an abandoned request may have been granted.
func (a *acquisition) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.client.cfg.Timeout)
	defer cancel()
	_ = a.client.release(ctx, a.target, a.o) // if it fails, the lease expires
}

// refresh renews a lease that was granted after a long wait, because the client measures the lease
// from the start of the request.
func (a *acquisition) refresh(ctx context.Context, l *lease) error {
	if time.Since(l.started) <= l.ttl/3 {
		return nil
	}
	a.uncertain = true // until the renewal succeeds, nobody is responsible for the lock
	renewed, err := a.client.renew(ctx, a.target, a.o)
	if err != nil {
		return err
	}
	a.uncertain = false
	l.ttl, l.started = renewed.ttl, renewed.started
	return nil
}
