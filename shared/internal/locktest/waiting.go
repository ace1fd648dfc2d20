package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/lock"
)

func waitingTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"ends when the holder releases the lock": waitsForRelease,
		"ends when the holder's lease ends":      waitsForExpiry,
		"leaves no waiter or lease behind":       leavesNothingBehind,
		"the context ends: returns its error":    returnsTheContextsError,
	}
}

func waitsForRelease(t *testing.T, s Store) {
	ctx, name := t.Context(), newName()
	ann := acquire(t, s, lock.Request{Name: name, TTL: time.Minute})
	granted := make(chan lock.Lease, 1)
	go func() {
		defer close(granted)
		if lease, err := s.Acquire(ctx, lock.Request{Name: name, Wait: lock.MaxWait}); err == nil {
			granted <- lease
		}
	}()
	time.AfterFunc(100*time.Millisecond, func() {
		_, _ = s.Release(context.WithoutCancel(ctx), ann.Key, ann.Token)
	})

	bob, ok := <-granted
	require.True(t, ok)
	require.Greater(t, bob.Fence, ann.Fence)
	require.Less(t, bob.Waited, prompt)
}

func waitsForExpiry(t *testing.T, s Store) {
	name := newName()
	expired := acquire(t, s, lock.Request{Name: name, TTL: 200 * time.Millisecond})
	next := acquire(t, s, lock.Request{Name: name, Wait: lock.MaxWait})
	require.False(t, next.AcquiredAt.Before(expired.ExpiresAt))
	require.Greater(t, next.Fence, expired.Fence)
	require.Less(t, next.Waited, prompt)
}

func leavesNothingBehind(t *testing.T, s Store) {
	name := newName()
	key := acquire(t, s, lock.Request{Name: name, TTL: time.Minute}).Key
	_, err := s.Acquire(t.Context(), lock.Request{Name: name, Wait: 50 * time.Millisecond})
	require.ErrorIs(t, err, lock.ErrHeld)
	state := inspect(t, s, key)
	require.Zero(t, state.Waiters)
	require.Len(t, state.Holders, 1)
}

func returnsTheContextsError(t *testing.T, s Store) {
	name := newName()
	key := acquire(t, s, lock.Request{Name: name, TTL: time.Minute}).Key
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, lock.Request{Name: name, Wait: lock.MaxWait})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	state := inspect(t, s, key)
	require.Zero(t, state.Waiters)
	require.Len(t, state.Holders, 1)
}
