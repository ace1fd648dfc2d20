package locktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/lock"
)

func renewTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"extends the lease and keeps the fence":     extendsTheLease,
		"not held: reports why":                     reportsWhyNotHeld,
		"late: never reacquires a lease that ended": neverReacquires,
	}
}

func releaseTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"repeated: succeeds": repeatsRelease,
	}
}

func forceTests() map[string]func(*testing.T, Store) {
	return map[string]func(*testing.T, Store){
		"ends the lease and raises the fence": endsTheLease,
	}
}

func extendsTheLease(t *testing.T, s Store) {
	lease := acquire(t, s, lock.Request{Name: newName(), TTL: ttl})
	renewed, err := s.Renew(t.Context(), lease.Key, lease.Token, 2*ttl)
	require.NoError(t, err)
	require.Equal(t, lease.Fence, renewed.Fence)
	require.Equal(t, lease.Key, renewed.Key)
	require.Equal(t, 2*ttl, renewed.TTL)
	requireLonger(t, lease.ExpiresAt, renewed.ExpiresAt, ttl)
}

// redsync reports "already taken" after the lease has ended, although no token holds the lock.
func reportsWhyNotHeld(t *testing.T, s Store) {
	key, stranger := lock.Key{Name: newName()}, newToken()
	requireReason := func(reason lock.Reason) {
		t.Helper()
		_, err := s.Renew(t.Context(), key, stranger, ttl)
		RequireNotHeld(t, err, reason)
		_, err = s.Release(t.Context(), key, stranger)
		RequireNotHeld(t, err, reason)
	}
	requireReason(lock.Expired)
	acquire(t, s, lock.Request{Name: key.Name, TTL: time.Minute})
	requireReason(lock.HeldByOther)
}

// In redis-semaphore, a late renewal reacquires the lock.
func neverReacquires(t *testing.T, s Store) {
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		lost := acquire(t, s, lock.Request{Name: newName(), Mode: mode, TTL: lock.MinTTL})
		require.Eventually(t, func() bool {
			state, err := s.Inspect(t.Context(), lost.Key)
			return err == nil && !state.Held
		}, prompt, 5*time.Millisecond)

		_, err := s.Renew(t.Context(), lost.Key, lost.Token, ttl)
		RequireNotHeld(t, err, lock.Expired)
		_, err = s.Release(t.Context(), lost.Key, lost.Token)
		RequireNotHeld(t, err, lock.Expired)
		require.False(t, inspect(t, s, lost.Key).Held)
	}
}

// A caller repeats a Release whose reply was lost.
func repeatsRelease(t *testing.T, s Store) {
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		lease := acquire(t, s, lock.Request{Name: newName(), Mode: mode})
		for range 2 {
			_, err := s.Release(t.Context(), lease.Key, lease.Token)
			require.NoError(t, err, mode)
		}
	}
}

func endsTheLease(t *testing.T, s Store) {
	key := lock.Key{Name: newName()}
	ended, err := s.Force(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, ended)

	ann := acquire(t, s, lock.Request{Name: key.Name, TTL: time.Minute})
	ended, err = s.Force(t.Context(), key)
	require.NoError(t, err)
	require.EqualValues(t, 1, ended)
	_, err = s.Renew(t.Context(), key, ann.Token, ttl)
	RequireNotHeld(t, err, lock.Forced)
	require.Greater(t, acquire(t, s, lock.Request{Name: key.Name}).Fence, ann.Fence)
}
