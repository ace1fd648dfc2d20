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

// supervise passes signals on until the command has ended, and ends its group when the lock is lost
// or the command has left something behind.
func (r *lockRun) supervise(lock *client.Lock, g *group.Group, signals <-chan os.Signal) {
	for {
		select {
		case s := <-signals:
			_ = g.Signal(s) // a group that has just ended needs none
		case <-lock.Context().Done():
			r.app.note("sluice: %v; ending the command", context.Cause(lock.Context()))
			g.End(r.left(lock))
			<-g.Exited()
			return
		case <-g.Exited():
			g.End(r.left(lock))
			return
		}
	}
}

// left is how long a group may take to end: the grace, but no longer than the lease lasts; and no
// time at all when another may hold the lock.
func (r *lockRun) left(lock *client.Lock) time.Duration {
	if err := lock.Err(); errors.Is(err, client.ErrStolen) || errors.Is(err, client.ErrForced) ||
		errors.Is(err, client.ErrLockNotHeld) {
		return 0
	}
	return max(0, min(time.Duration(r.grace), time.Until(lock.ValidUntil())-r.killMargin()))
}

// finish releases the lock and makes the exit code.
func (r *lockRun) finish(ctx context.Context, lock *client.Lock, g *group.Group) error {
	lostBefore := lock.Err()
	err := lock.Unlock(ctx)
	code := g.ExitCode()
	switch {
	case lostBefore != nil:
		return codedError{exitLost, fmt.Errorf("the command was ended (%d): %w", code, lostBefore)}
	case errors.Is(err, client.ErrLockNotHeld), err != nil && lock.Err() != nil:
		return codedError{exitLost, fmt.Errorf("the command had ended (%d), but the lock was lost before: %w", code,
			err)}
	case err != nil:
		r.app.note("sluice: the lock is left to its TTL: %v", err)
	}
	if code == 0 {
		return nil
	}
	return codedError{code: code}
}
