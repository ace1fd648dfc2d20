package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lock is a lock, or a permit of a semaphore, that this process holds. The client renews the lease
// until [Lock.Unlock] or until the lock is lost. A Lock is safe for concurrent use.
//
// A process that was paused for longer than the lease can continue without noticing that it lost
// the lock. Pass [Lock.Fence] to the resource that the lock protects: the resource must refuse a
// fence that is lower than the highest fence that it has seen. See package
// [github.com/sluicehq/sluice/client/fence].
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
	failure error       // of the last renewal; nil after a success
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

	lock.mu.Lock() // the timer can call expire before l.expiry is assigned
	lock.expiry = time.AfterFunc(time.Until(lock.trusted()), lock.expire)
	lock.mu.Unlock()

	go lock.keep(renewing)
	return lock
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.target.name }

// Token returns the token that proves the ownership. Everyone who has the token can renew and
// release the lock: do not log it.
func (l *Lock) Token() string { return l.o.Token }

// Fence returns the fencing token. It is higher for each later holder of the same name. It is
// positive and fits in 53 bits.
func (l *Lock) Fence() int64 { return l.fence }

// InUse returns the number of permits of the semaphore that were in use when this permit was
// acquired, including this permit. It is 0 for a lock.
func (l *Lock) InUse() int { return l.inUse }

// Reacquired reports whether the token already held the lock. This happens if an earlier answer was
// lost, if the caller reuses a [LockOptions.Token], and after [Client.Resume].
func (l *Lock) Reacquired() bool { return l.reacquired }

// Context returns a context that ends when the lock is lost, unlocked or detached. Pass it to the
// work that the lock protects.
//
// context.Cause returns the reason. If the lock was lost, the reason matches [ErrExpired],
// [ErrStolen], [ErrForced], [ErrStoreUnreachable] or [ErrMaxHold]. Otherwise it is [ErrUnlocked],
// [ErrDetached], or the cause of the context with which the lock was acquired.
func (l *Lock) Context() context.Context { return l.ctx }

// Err returns the reason why the lock was lost. It returns nil while the lock is held, and if the
// lock was unlocked or detached before it was lost.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// ValidUntil returns the time, on the monotonic clock of this process, at which the lease ends if
// it is not renewed. It is the start of the last granted request plus the TTL, minus 1 % of the TTL
// and 2 ms for clock drift.
func (l *Lock) ValidUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.until()
}

// Unlock stops the renewal, ends the lock's context and then releases the lock. It releases the
// lock even if ctx has ended. It takes at most [Config.Timeout]. For a lost lock, it takes at most
// 1 s or the rest of the lease, whichever is longer.
//
// It returns nil if the lock was held until the release. If the lock was lost, it returns the
// reason: the work may have overlapped with the work of another holder. After a failed release, a
// second call tries again. Otherwise further calls have no effect.
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

// lostRelease is the minimum time limit for the release of a lost lock. A lost lock is released
// too: if the API renewed the lease and only its answer was lost, the lock is still held at the
// store.
const lostRelease = time.Second

// released records the result of the release, and returns the result of Unlock.
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

// Detach stops the renewal without releasing the lock, and returns its token. Another process can
// take the lock over with [Client.Resume] before the lease ends. Errors: same as [Lock.Err].
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

// trusted returns the time at which the lock's context ends if the lease is not renewed. The caller
// holds mu, or no other goroutine uses l yet.
func (l *Lock) trusted() time.Time { return l.lease.until().Add(-l.o.Margin) }

// expire runs when the timer fires. It does nothing if a renewal has extended the lease in the
// meantime.
func (l *Lock) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && !time.Now().Before(l.trusted()) {
		l.lose(l.expiryCause())
	}
}

// expiryCause returns ErrStoreUnreachable if the last renewal failed. Otherwise no renewal ended in
// time, and expiryCause returns ErrExpired. The caller holds mu.
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
