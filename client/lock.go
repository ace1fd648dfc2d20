package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lock is a lock, or a permit of a semaphore, that this process holds. It renews its lease until
// [Lock.Unlock] or until it is lost. It is safe for concurrent use.
//
// A process that was paused for longer than the lease may not notice that it lost the lock. Hand
// [Lock.Fence] to the resource that the lock protects, which refuses a lower fence; see the package
// fence.
type Lock struct {
	client     *Client
	target     target
	o          LockOptions
	fence      int64
	inUse      int
	reacquired bool
	parent     context.Context // the context of the call that acquired the lock
	ctx        context.Context
	cancel     context.CancelCauseFunc
	stop       context.CancelFunc // ends the renewal
	stopped    chan struct{}      // closed when the renewal has ended
	ends       time.Time          // when MaxHold is reached; the zero time means never

	mu      sync.Mutex
	lease   lease
	failure error       // of the last renewal; nil if it succeeded
	lost    error       // why the lock was lost; nil while it is held
	expiry  *time.Timer // fires when the lease can no longer be trusted

	unlocking sync.Mutex
	over      bool // unlocked or detached; guarded by unlocking
}

func newLock(parent context.Context, c *Client, t target, o LockOptions, l lease) *Lock {
	lock := &Lock{
		client: c, target: t, o: o, fence: l.fence, inUse: l.inUse, reacquired: l.reacquired, parent: parent,
		stopped: make(chan struct{}), lease: l,
	}
	lock.ctx, lock.cancel = context.WithCancelCause(parent)
	if o.MaxHold > 0 {
		lock.ends = l.started.Add(o.MaxHold)
	}

	renewing, stop := context.WithCancel(context.WithoutCancel(parent))
	lock.stop = stop

	lock.mu.Lock() // expire may run before the assignment
	lock.expiry = time.AfterFunc(time.Until(lock.trusted()), lock.expire)
	lock.mu.Unlock()

	go lock.keep(renewing)
	return lock
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.target.name }

// Token returns the token that proves the ownership. Anyone who has it can renew and release the
// lock: do not log it.
func (l *Lock) Token() string { return l.o.Token }

// Fence returns the fencing token, which increases from holder to holder of a name. It is positive
// and fits in 53 bits.
func (l *Lock) Fence() int64 { return l.fence }

// InUse returns how many permits of the semaphore were in use after this one was acquired. It is 0
// for a lock.
func (l *Lock) InUse() int { return l.inUse }

// Reacquired reports whether the token already held the lock when it was acquired, because an
// earlier answer was lost or the caller has set [LockOptions.Token].
func (l *Lock) Reacquired() bool { return l.reacquired }

// Context returns a context that ends when the lock can no longer be trusted, or is unlocked or
// detached. Run the work that the lock protects under it.
//
// context.Cause returns the reason: [ErrExpired], [ErrStolen], [ErrForced], [ErrStoreUnreachable]
// or [ErrMaxHold] if the lock was lost, [ErrUnlocked] or [ErrDetached], or the cause of the context
// that the lock was acquired with.
func (l *Lock) Context() context.Context { return l.ctx }

// Err returns why the lock was lost. It returns nil while the lock is held, and after it was
// unlocked or detached in time.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// ValidUntil returns when the lease can no longer be trusted unless it is renewed, on the monotonic
// clock of this process. It is measured from the start of the last granted request, with a
// deduction for clock drift.
func (l *Lock) ValidUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.until()
}

// Unlock stops the renewal, ends the lock's context and then releases the lock. It does so also if
// ctx has ended, and takes up to the client's Timeout, or about a second if the lock was lost.
//
// It returns nil if the lock was held until the release, otherwise the reason for which it was
// lost: the work may have overlapped with that of another holder. Further calls have no effect,
// except after a call that did not reach the API.
func (l *Lock) Unlock(ctx context.Context) error {
	l.unlocking.Lock()
	defer l.unlocking.Unlock()
	if l.over {
		return l.Err()
	}

	l.halt(ErrUnlocked)
	limit := l.client.cfg.Timeout
	if lost := l.Err(); lost != nil {
		if errors.Is(lost, ErrLockNotHeld) || errors.Is(lost, ErrStolen) {
			l.over = true // there is nothing to release
			return lost
		}
		limit = min(limit, max(lostRelease, time.Until(l.ValidUntil())))
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return l.released(l.client.release(ctx, l.target, l.o))
}

// lostRelease is the minimum time for the release of a lost lock. If the answer to a renewal was
// lost, the store may hold the lock for another TTL.
const lostRelease = time.Second

// released records the result of the release and returns that of Unlock.
func (l *Lock) released(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.over = err == nil || errors.Is(err, ErrLockNotHeld)
	if l.lost != nil {
		return l.lost
	}
	if errors.Is(err, ErrLockNotHeld) {
		l.lost = err
	}
	return err
}

// Detach stops the renewal without releasing the lock, and returns its token. Another process
// continues with [Client.Resume] before the lease ends. The error is that of [Lock.Err].
func (l *Lock) Detach() (token string, err error) {
	l.unlocking.Lock()
	defer l.unlocking.Unlock()
	l.halt(ErrDetached)
	l.over = true
	return l.o.Token, l.Err()
}

// halt ends the context with the given cause. When it returns, no renewal is running.
func (l *Lock) halt(cause error) {
	l.cancel(cause)
	l.stop()
	<-l.stopped

	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiry.Stop()
	if l.lost == nil && !time.Now().Before(l.lease.until()) { // the timer was late
		l.lose(l.expiryCause())
	}
}

// trusted returns when the context ends unless the lease is renewed. The caller holds mu, or is the
// only one to use l.
func (l *Lock) trusted() time.Time { return l.lease.until().Add(-l.o.Margin) }

// expire runs when the timer fires. A renewal may have extended the lease in the meantime; it has
// then reset the timer.
func (l *Lock) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && !time.Now().Before(l.trusted()) {
		l.lose(l.expiryCause())
	}
}

// expiryCause distinguishes a lease that could not be renewed from one whose process was too late.
// The caller holds mu.
func (l *Lock) expiryCause() error {
	if l.failure != nil {
		return fmt.Errorf("%w: %w", ErrStoreUnreachable, l.failure)
	}
	return ErrExpired
}

// lose records why the lock was lost, and ends its context. The caller holds mu.
func (l *Lock) lose(cause error) {
	l.lost = fmt.Errorf("%s is lost: %w", l.target, cause)
	l.expiry.Stop()
	l.cancel(l.lost)
	l.stop()
}
