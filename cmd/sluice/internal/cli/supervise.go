package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/group"
)

// supervise passes signals on until the command has ended. It ends the group if the lock is lost,
// and after the command has ended.
func (r *lockRun) supervise(lock *client.Lock, g *group.Group, signals <-chan os.Signal) {
	for {
		select {
		case s := <-signals:
			_ = g.Signal(s) // fails if the group has just ended
		case <-lock.Context().Done():
			r.app.note("sluice: %v; ending the command", context.Cause(lock.Context()))
			g.End(r.graceLeft(lock))
			<-g.Exited()
			return
		case <-g.Exited():
			g.End(r.graceLeft(lock))
			return
		}
	}
}

// graceLeft returns the time that the group may take to end: --grace, but at most the rest of the
// lease. It returns 0 if another holder may have the lock.
func (r *lockRun) graceLeft(lock *client.Lock) time.Duration {
	err := lock.Err()
	if errors.Is(err, client.ErrStolen) || errors.Is(err, client.ErrForced) || errors.Is(err, client.ErrLockNotHeld) {
		return 0
	}
	return max(0, min(time.Duration(r.grace), time.Until(lock.ValidUntil())-r.killMargin()))
}

// finish releases the lock, and returns an error with the exit code.
func (r *lockRun) finish(ctx context.Context, lock *client.Lock, g *group.Group) error {
	lostBefore := lock.Err()
	err := lock.Unlock(ctx)
	code := g.ExitCode()
	switch {
	case lostBefore != nil:
		return codedError{exitLost, fmt.Errorf("the command was ended (exit code %d): %w", code, lostBefore)}
	case errors.Is(err, client.ErrLockNotHeld), err != nil && lock.Err() != nil:
		err = fmt.Errorf("the lock was lost before the command ended (exit code %d): %w", code, err)
		return codedError{exitLost, err}
	case err != nil:
		r.app.note("sluice: the lock could not be released and is held until its TTL has passed: %v", err)
	}
	if code == 0 {
		return nil
	}
	return codedError{code: code}
}
