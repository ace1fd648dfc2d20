package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// heartbeat is the time that a waiter keeps its place in the queue after each attempt.
	heartbeat = 2 * time.Second
	// pollInterval is the longest pause between two attempts of a waiter.
	pollInterval = 400 * time.Millisecond
	// expiryMargin is added to the holder's remaining lease, so that the waiter tries again after
	// the lease has ended.
	expiryMargin = 500 * time.Microsecond
)

// waiter is a call of Acquire with Request.Wait above 0.
type waiter struct {
	redis    *Redis
	request  Request
	call     string // identifies this Acquire in the queue
	deadline time.Time
}

// acquire tries once without queueing, so that an uncontended Acquire is one script call. If the
// lock is held, acquire first subscribes to wake-ups and then joins the queue, so that it does not
// miss the wake-up of a release that follows immediately. If Redis processes the subscription too
// late, the waiter notices the release at its next poll.
func (w *waiter) acquire(ctx context.Context) (Lease, error) {
	last, err := w.try(ctx, tryOptions{})
	if err != nil || last.lease != nil {
		return w.finish(ctx, last, err)
	}

	woken, unsubscribe := w.redis.wakeups.subscribe(ctx, w.request.Key().stateKey(), w.call)
	defer unsubscribe()
	for {
		last, err = w.try(ctx, tryOptions{enqueue: true})
		if err != nil || last.lease != nil {
			return w.finish(ctx, last, err)
		}
		if last.conflict.Obstacle == OtherMode || !w.pause(ctx, woken, last.conflict.Remaining) {
			break
		}
	}

	w.redis.abandon(ctx, w.request, w.call)
	held := Held(w.request.Kind, last.conflict)
	if err := ctx.Err(); err != nil {
		return Lease{}, errors.Join(held, err)
	}
	return Lease{}, held
}

func (w *waiter) try(ctx context.Context, o tryOptions) (attempt, error) {
	return w.redis.try(ctx, w.request, w.call, o)
}

// finish returns the lease or the error of the last attempt. After an error, it removes the
// waiter's lease and its place in the queue from Redis.
func (w *waiter) finish(ctx context.Context, last attempt, err error) (Lease, error) {
	if err != nil {
		w.redis.abandon(ctx, w.request, w.call)
		return Lease{}, err
	}
	return *last.lease, nil
}

// pause waits until a wake-up arrives, the holder's lease ends, the poll interval has passed or the
// deadline is reached. It returns false if the deadline has passed or ctx has ended.
func (w *waiter) pause(ctx context.Context, woken <-chan struct{}, remaining time.Duration) bool {
	poll := pollInterval - rand.N(pollInterval/4)
	left := time.Until(w.deadline)
	timer := time.NewTimer(min(remaining+expiryMargin, poll, left))
	defer timer.Stop()

	select {
	case <-woken:
		return true
	case <-timer.C:
		return time.Now().Before(w.deadline)
	case <-ctx.Done():
		return false
	}
}
