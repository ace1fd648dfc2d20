package lock

import (
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"
)

// heartbeat is how long a waiter that is not heard of keeps its place; it is heard of at least every pollFloor.
const (
	heartbeat    = 2 * time.Second
	pollFloor    = 400 * time.Millisecond
	cleanupLimit = 250 * time.Millisecond
	// afterExpiry is added to a holder's remaining lease, so that a waiter asks when it has surely ended.
	afterExpiry = 500 * time.Microsecond
)

// Acquire takes a lock or a permit, waiting for it up to q.Wait. q must have been normalized.
//
// Waiters are served in the order of their arrival; one that is not heard of for two seconds is passed over. A release wakes the first of
// them; the wake-up is only a hint, so each also asks when the holder's lease ends, and every 300 to 400 ms.
//
// Errors: lock_held when the wait is over; store_unavailable; ctx's own, after what was begun has been cleaned up.
func (r *Redis) Acquire(ctx context.Context, q Request) (Lease, error) {
	if q.Wait <= 0 {
		return r.acquireAtOnce(ctx, q)
	}
	started := time.Now()
	w := &waiter{redis: r, q: q, id: rand.Text(), deadline: started.Add(q.Wait)}
	lease, err := w.acquire(ctx)
	lease.Waited = time.Since(started)
	return lease, err
}

func (r *Redis) acquireAtOnce(ctx context.Context, q Request) (Lease, error) {
	a, err := r.try(ctx, q, "")
	if err != nil {
		if ctx.Err() != nil && q.tokenMade { // nobody else knows the token: what it may have got is lost to all until it expires
			r.leave(ctx, q, "", 0)
		}
		return Lease{}, err
	}
	if a.lease == nil {
		return Lease{}, held(a.remaining, a.holder, a.holder == "")
	}
	return *a.lease, nil
}

// waiter is one waiting acquire.
type waiter struct {
	redis    *Redis
	q        Request
	id       string
	deadline time.Time
	since    int64 // the server's clock at the first answer, µs; 0 before it
}

// acquire asks once without queueing, so that an uncontended acquire is one call. Only then does it subscribe, and then queue: in this
// order no release can fall between.
func (w *waiter) acquire(ctx context.Context) (Lease, error) {
	last, err := w.try(ctx, "")
	if err != nil || last.lease != nil {
		return w.settle(ctx, last, err)
	}
	wake, stop := w.redis.wake.subscribe(ctx, keys(w.q.Kind, w.q.Name)[0], w.id)
	defer stop()
	for {
		if last, err = w.try(ctx, w.id); err != nil || last.lease != nil {
			return w.settle(ctx, last, err)
		}
		if !w.pause(ctx, wake, last.remaining) {
			break
		}
	}
	w.redis.leave(ctx, w.q, w.id, w.releaseSince())
	refusal := held(last.remaining, last.holder, last.holder == "")
	if err := ctx.Err(); err != nil {
		return Lease{}, errors.Join(refusal, err)
	}
	return Lease{}, refusal
}

func (w *waiter) try(ctx context.Context, id string) (attempt, error) {
	a, err := w.redis.try(ctx, w.q, id)
	if err == nil && w.since == 0 {
		w.since = a.now
	}
	return a, err
}

// settle ends the wait with a lease or with an error, after which nothing of this waiter is left in the store.
func (w *waiter) settle(ctx context.Context, a attempt, err error) (Lease, error) {
	if err != nil {
		w.redis.leave(ctx, w.q, w.id, w.releaseSince())
		return Lease{}, err
	}
	return *a.lease, nil
}

// releaseSince is the earliest acquisition that can only be this call's: any for a token made here, none for a caller's before the
// first answer.
func (w *waiter) releaseSince() int64 {
	if w.q.tokenMade || w.since != 0 {
		return w.since
	}
	return 1 << 53
}

// pause waits for a wake-up, the end of the holder's lease or the poll, and reports false when the wait is over.
func (w *waiter) pause(ctx context.Context, wake <-chan struct{}, remaining time.Duration) bool {
	poll := pollFloor - mrand.N(pollFloor/4)
	left := time.Until(w.deadline)
	timer := time.NewTimer(min(remaining+afterExpiry, poll, left))
	defer timer.Stop()
	select {
	case <-wake:
		return true
	case <-timer.C:
		return time.Now().Before(w.deadline)
	case <-ctx.Done():
		return false
	}
}

// leave cleans up on a context of its own. When the store is away the queue's entry ends with its heartbeat, and the lease with its TTL.
func (r *Redis) leave(ctx context.Context, q Request, waiter string, since int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	_, _ = r.conn.Run(ctx, leaveScript, keys(q.Kind, q.Name), waiter, q.Token, since, lingerMS)
}
