package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

// acquire acquires the lock. It prints a line if it has to wait.
func (r *lockRun) acquire(ctx context.Context, api *client.Client) (*client.Lock, error) {
	// A signal ends the wait. Once the command runs, signals are passed on to it instead of ending
	// the lock's context.
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, stop)()

	try, wait := r.methods(api)
	lock, err := try(waiting)
	if waitable := errors.Is(err, client.ErrLockHeld) || errors.Is(err, client.ErrStoreUnavailable); waitable {
		if !r.waitSet || r.wait > 0 {
			r.app.note("sluice: waiting: %s", err)
			lock, err = wait(waiting)
		}
	}

	switch {
	case err == nil:
		return lock, nil
	case ctx.Err() != nil:
		interrupted := errors.New("interrupted while waiting for the lock; the command was not run")
		return nil, codedError{exitInterrupted, interrupted}
	case errors.Is(err, client.ErrLockHeld), errors.Is(err, client.ErrStoreUnavailable),
		errors.Is(err, client.ErrUnreachable):
		return nil, codedError{exitNoLock, err}
	}
	return nil, err
}

// methods returns the two functions that acquire the lock or permit: try does not wait, and wait
// does.
func (r *lockRun) methods(api *client.Client) (try, wait func(context.Context) (*client.Lock, error)) {
	o := client.LockOptions{
		TTL:         time.Duration(r.ttl),
		Wait:        time.Duration(r.wait),
		Owner:       r.owner,
		Consistency: client.Consistency(r.consistency),
		Margin:      time.Duration(r.grace) + r.killMargin(),
		Metadata:    map[string]any{"command": r.command[0], "pid": os.Getpid()},
	}
	if r.capacity > 0 {
		s := api.Semaphore(r.name, r.capacity)
		try = func(ctx context.Context) (*client.Lock, error) { return s.TryAcquire(ctx, o) }
		wait = func(ctx context.Context) (*client.Lock, error) { return s.Acquire(ctx, o) }
		return try, wait
	}
	if r.shared {
		o.Mode = client.LockShared
	}
	try = func(ctx context.Context) (*client.Lock, error) { return api.TryLock(ctx, r.name, o) }
	wait = func(ctx context.Context) (*client.Lock, error) { return api.Lock(ctx, r.name, o) }
	return try, wait
}

// closeTimeout is longer than the 20 s that a request may wait at the API.
const closeTimeout = 25 * time.Second

// close waits until the client has released a lock that the API granted after the wait was
// interrupted. A second interrupt ends close.
func (r *lockRun) close(ctx context.Context, api *client.Client) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	interruptible, stop := signal.NotifyContext(ending, os.Interrupt)
	defer stop()
	if err := api.Close(interruptible); err != nil {
		r.app.note("sluice: the API may still grant the lock to this command; it is then held for its TTL, %s",
			human.Duration(time.Duration(r.ttl)))
	}
}
