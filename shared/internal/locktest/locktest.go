// Package locktest is the conformance suite of lock stores.
package locktest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// Store is a store of locks.
type Store interface {
	Acquire(ctx context.Context, req lock.Request) (lock.Lease, error)
	Renew(ctx context.Context, key lock.Key, token string, ttl time.Duration) (lock.Lease, error)
	Release(ctx context.Context, key lock.Key, token string) (time.Duration, error)
	Force(ctx context.Context, key lock.Key) (int64, error)
	Inspect(ctx context.Context, key lock.Key) (lock.State, error)
}

const (
	ttl    = 5 * time.Second
	prompt = 4 * time.Second // less than ttl, and enough for a busy machine
)

// Run runs the tests that every store must pass.
func Run(t *testing.T, s Store) {
	t.Helper()
	for method, tests := range map[string]map[string]func(*testing.T, Store){
		"Acquire":   acquireTests(),
		"waiting":   waitingTests(),
		"Renew":     renewTests(),
		"Release":   releaseTests(),
		"Force":     forceTests(),
		"arguments": argumentTests(),
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, s)
				})
			}
		})
	}
}

// RunWithoutSemaphores tests that a store without semaphores refuses them.
func RunWithoutSemaphores(t *testing.T, s Store) {
	t.Helper()
	key := lock.Key{Kind: lock.Semaphore, Name: newName()}
	for method, call := range callsOn(t.Context(), s, key, newToken(), ttl) {
		t.Run(method+" refuses a semaphore", func(t *testing.T) {
			t.Parallel()
			f := RequireFault(t, call(), fault.InvalidRequest)
			require.Equal(t, "kind", f.Fields[0].Field)
		})
	}
}

// RequireFault requires that err is a [fault.Error] with this code, and returns it.
func RequireFault(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

// RequireNotHeld requires that err is [lock.ErrNotHeld] for this reason.
func RequireNotHeld(t testing.TB, err error, reason lock.Reason) {
	t.Helper()
	require.ErrorIs(t, err, lock.ErrNotHeld)
	require.Equal(t, reason, lock.ReasonOf(err), "%v", err)
}

// acquire acquires a lock. An error fails the test.
func acquire(t testing.TB, s Store, req lock.Request) lock.Lease {
	t.Helper()
	lease, err := s.Acquire(t.Context(), req)
	require.NoError(t, err, "%+v", req)
	return lease
}

func inspect(t testing.TB, s Store, key lock.Key) lock.State {
	t.Helper()
	state, err := s.Inspect(t.Context(), key)
	require.NoError(t, err)
	return state
}

// newName returns the name of a lock that no other test uses.
func newName() string { return "lock-" + rand.Text() }

func newToken() string { return rand.Text() }

// requireLonger requires that the time from earlier to later is at least d. It tolerates 200 ms
// less, because a quorum deducts an allowance for clock drift from its leases.
func requireLonger(t testing.TB, earlier, later time.Time, d time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, later.Sub(earlier), d-200*time.Millisecond)
}
