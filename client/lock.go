package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lock is a lock, or a semaphore's permit, that this process holds. It renews itself until
// [Lock.Unlock] or until it is lost.
//
// A lease cannot stop a process that was paused beyond it; [Lock.Fence] can: hand it to the
// resource, which refuses a lower one (see the package fence).
type Lock struct {
	client  *Client
	target  target
	o       LockOptions
	fence   int64
	inUse   int
	again   bool
	parent  context.Context
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    context.CancelFunc // ends the renewal
	stopped chan struct{}      // closed when it has ended
	ends    time.Time          // by MaxHold; zero is never

	mu      sync.Mutex
	lease   lease
	failure error       // of the last renewal; nil when it succeeded
	lost    error       // why it is lost
	expiry  *time.Timer // fires when the lease can no longer be trusted

	unlocking sync.Mutex
	over      bool // unlocked or detached
}

func newLock(parent context.Context, c *Client, t target, o LockOptions, l lease) *Lock {
	lock := &Lock{client: c, target: t, o: o, fence: l.fence, inUse: l.inUse, again: l.reacquired, parent: parent,
		stopped: make(chan struct{}), lease: l}
	lock.ctx, lock.cancel = context.WithCancelCause(parent)
	if o.MaxHold > 0 {
		lock.ends = l.started.Add(o.MaxHold)
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(parent))
	lock.stop = stop
	lock.mu.Lock()
	lock.expiry = time.AfterFunc(time.Until(lock.trusted()), lock.expire)
	lock.mu.Unlock()
	go lock.keep(renewing)
	return lock
}

// Name is the lock's.
func (l *Lock) Name() string { return l.target.name }

// Token proves the ownership. Whoever has it can renew and release the lock: keep it out of logs.
func (l *Lock) Token() string { return l.o.Token }

// Fence rises from holder to holder of one name. It is positive and fits in 53 bits.
func (l *Lock) Fence() int64 { return l.fence }

// InUse is how many permits of a semaphore were in use when this one was taken, itself included. It
// is 0 for a lock.
func (l *Lock) InUse() int { return l.inUse }

// Reacquired says that the token held the lock already when it was asked for: an answer had been
// lost, or the token is the caller's own.
func (l *Lock) Reacquired() bool { return l.again }

// Context ends the moment the lock can no longer be trusted, or is given up; work that the lock
// protects belongs under it.
//
// context.Cause tells why: [ErrExpired], [ErrStolen], [ErrForced], [ErrStoreUnreachable] or
// [ErrMaxHold] when it was lost, [ErrUnlocked] or [ErrDetached] when it was given up, else that of
// the context which the lock was taken with.
func (l *Lock) Context() context.Context { return l.ctx }

// Err is why the lock was lost, or nil while it is held, and after it was given up in time.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// ValidUntil is when the lease can no longer be trusted unless it is renewed, on this process's
// monotonic clock. It counts from the start of the last request that was granted, less an allowance
// for drift.
func (l *Lock) ValidUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.until()
}

// Unlock stops the renewal, ends the lock's context and then gives the lock back, within the
// client's Timeout even when ctx has ended, and within about a second when the lock is lost.
//
// It returns nil when the lock was held until then, and else why it was lost: what was done under
// it may have met another holder's work. Another call after that does nothing, unless the first one
// failed to reach the API.
func (l *Lock) Unlock(ctx context.Context) error {
	l.unlocking.Lock()
	defer l.unlocking.Unlock()
	if l.over {
		return l.Err()
	}
	l.halt(ErrUnlocked)
	limit := l.client.cfg.Timeout
	switch lost := l.Err(); {
	case errors.Is(lost, ErrLockNotHeld), errors.Is(lost, ErrStolen):
		l.over = true
		return lost
	case lost != nil: // it is nearly over by itself: nobody needs to wait for the release
		limit = min(limit, max(lostRelease, time.Until(l.ValidUntil())))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := l.client.release(ctx, l.target, l.o)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = err == nil || errors.Is(err, ErrLockNotHeld)
	switch {
	case l.lost != nil:
		return l.lost
	case errors.Is(err, ErrLockNotHeld):
		l.lost = err
	}
	return err
}

// Detach gives the lock up without releasing it, and returns its token: another process takes it
// over with [Client.Resume], within the rest of the lease.
func (l *Lock) Detach() (token string, err error) {
	l.unlocking.Lock()
	defer l.unlocking.Unlock()
	l.halt(ErrDetached)
	l.over = true
	return l.o.Token, l.Err()
}

// lostRelease is how long at least the release of a lost lock may take: the store may keep it for
// another TTL when the answer to a renewal was lost.
const lostRelease = time.Second

// halt ends the context, and returns when no renewal is under way and none will be.
func (l *Lock) halt(why error) {
	l.cancel(why)
	l.stop()
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiry.Stop()
	if l.lost == nil && !time.Now().Before(l.lease.until()) { // the timer was late
		l.lose(l.why())
	}
}

// trusted is when the context ends unless the lease is renewed.
func (l *Lock) trusted() time.Time { return l.lease.until().Add(-l.o.Margin) }

// expire runs when the lease can no longer be trusted.
func (l *Lock) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && !time.Now().Before(l.trusted()) { // else it was renewed meanwhile, and the timer is set anew
		l.lose(l.why())
	}
}

// why tells a lease that was not renewed in time because nobody could, from one whose process was
// too late.
func (l *Lock) why() error {
	if l.failure != nil {
		return fmt.Errorf("%w: %w", ErrStoreUnreachable, l.failure)
	}
	return ErrExpired
}

// lose notes why the lock is lost, and ends its context. mu is held.
func (l *Lock) lose(why error) {
	l.lost = fmt.Errorf("%s is lost: %w", l.target, why)
	l.expiry.Stop()
	l.cancel(l.lost)
	l.stop()
}
