package lock

import (
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"
)

// heartbeat is how long a waiter that is not heard of keeps its place; it is heard of at least
// every pollFloor.
const (
	heartbeat    = 2 * time.Second
	pollFloor    = 400 * time.Millisecond
	cleanupLimit = 150 * time.Millisecond
	// afterExpiry is added to a holder's remaining lease, so that a waiter asks when it has surely
	// ended.
	afterExpiry = 500 * time.Microsecond
)

// Acquire takes a lock or a permit, waiting for it up to q.Wait. q must have been normalized.
//
// Waiters are served in the order of their arrival; one that is not heard of for two seconds is
// passed over. A release wakes the first of them; the wake-up is only a hint, so each also asks
// when the holder's lease ends, and every 300 to 400 ms.
//
// Errors: lock_held when the wait is over; store_unavailable; ctx's own, after what was begun has
// been cleaned up.
func (r *Redis) Acquire(ctx context.Context, q Request) (Lease, error) {
	if q.Wait <= 0 {
		return r.acquireAtOnce(ctx, q)
	}
	started := time.Now()
	w := &waiter{redis: r, q: q, call: rand.Text(), deadline: started.Add(q.Wait)}
	lease, err := w.acquire(ctx)
	lease.Waited = time.Since(started)
	return lease, err
}

func (r *Redis) acquireAtOnce(ctx context.Context, q Request) (Lease, error) {
	call := rand.Text()
	a, err := r.try(ctx, q, call, false)
	if err != nil { // the script may have been carried out all the same
		r.giveUp(ctx, q, call)
		return Lease{}, err
	}
	if a.lease == nil {
		return Lease{}, a.held()
	}
	return *a.lease, nil
}

// waiter is one waiting acquire.
type waiter struct {
	redis    *Redis
	q        Request
	call     string
	deadline time.Time
}

// acquire asks once without queueing, so that an uncontended acquire is one call. Only then does it
// subscribe, and then queue. A release that falls between, because the subscription was not there
// yet, costs one poll.
func (w *waiter) acquire(ctx context.Context) (Lease, error) {
	last, err := w.redis.try(ctx, w.q, w.call, false)
	if err != nil || last.lease != nil {
		return w.settle(ctx, last, err)
	}
	wake, stop := w.redis.wake.subscribe(ctx, base(w.q.Kind, w.q.Name), w.call)
	defer stop()
	for {
		if last, err = w.redis.try(ctx, w.q, w.call, true); err != nil || last.lease != nil {
			return w.settle(ctx, last, err)
		}
		if last.why == heldInOtherMode || !w.pause(ctx, wake, last.remaining) {
			break
		}
	}
	w.redis.giveUp(ctx, w.q, w.call)
	if err := ctx.Err(); err != nil {
		return Lease{}, errors.Join(last.held(), err)
	}
	return Lease{}, last.held()
}

// settle ends the wait with a lease or with an error, after which nothing of this waiter is left in
// the store.
func (w *waiter) settle(ctx context.Context, a attempt, err error) (Lease, error) {
	if err != nil {
		w.redis.giveUp(ctx, w.q, w.call)
		return Lease{}, err
	}
	return *a.lease, nil
}

// pause waits for a wake-up, the end of the holder's lease or the poll, and reports false when the
// wait is over.
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
