package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// failLimit is the maximum duration of a call while the store is unavailable.
const failLimit = 500 * time.Millisecond

func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, breakServer := range map[string]func(*testing.T, *redistest.Redis){
		"dead: every method fails within 500 ms": func(t *testing.T, r *redistest.Redis) {
			require.NoError(t, r.Server.Kill())
		},
		"hanging: every method fails within 500 ms": func(t *testing.T, r *redistest.Redis) {
			require.NoError(t, r.Server.Pause())
		},
		// After a failover, go-redis used connections to the read-only server for 15 minutes
		// (go-redis #2229).
		"read-only: every method fails within 500 ms": func(t *testing.T, r *redistest.Redis) {
			require.NoError(t, r.Client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Single(t)
			s := openProductionStore(t, r)
			held, err := s.Acquire(t.Context(), lock.Request{Name: "held", TTL: time.Minute})
			require.NoError(t, err)
			breakServer(t, r)
			requireUnavailable(t, s, held)
		})
	}

	t.Run("full: holders can renew, release and force; nothing new is granted", func(t *testing.T) {
		t.Parallel()
		servesHoldersWhenFull(t)
	})

	t.Run("past the caller's deadline: fails, and holds nothing afterwards", func(t *testing.T) {
		t.Parallel()
		holdsNothingAfterTheDeadline(t)
	})
}

// requireUnavailable requires that each writing method fails within failLimit. The store granted
// the lease in the argument held before it failed.
func requireUnavailable(t *testing.T, s *lock.Redis, held lock.Lease) {
	t.Helper()
	ctx := t.Context()
	for method, call := range map[string]func() error{
		"Acquire": func() error { _, err := s.Acquire(ctx, lock.Request{Name: "free"}); return err },
		"Acquire, waiting": func() error {
			_, err := s.Acquire(ctx, lock.Request{Name: "other", Wait: lock.MaxWait})
			return err
		},
		"Renew":   func() error { _, err := s.Renew(ctx, held.Key, held.Token, ttl); return err },
		"Release": func() error { _, err := s.Release(ctx, held.Key, held.Token); return err },
		"Force":   func() error { _, err := s.Force(ctx, held.Key); return err },
	} {
		started := time.Now()
		err := call()
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%s: %v", method, err)
		require.Less(t, time.Since(started), failLimit, method)
	}
}

func servesHoldersWhenFull(t *testing.T) {
	ctx := t.Context()
	r := redistest.Single(t)
	s := openProductionStore(t, r)
	grant := func(req lock.Request) lock.Lease {
		lease, err := s.Acquire(ctx, req)
		require.NoError(t, err)
		return lease
	}
	long := grant(lock.Request{Name: "long", TTL: time.Minute})
	// A release keeps the expiry of the state if the lease would have ended within 60 s.
	short := grant(lock.Request{Name: "short", TTL: time.Second})
	forced := grant(lock.Request{Name: "forced", TTL: time.Minute})
	permit := grant(lock.Request{Kind: lock.Semaphore, Name: "pool", TTL: time.Minute, Capacity: 3})
	require.NoError(t, r.Client.ConfigSet(ctx, "maxmemory", "1").Err())

	_, err := s.Acquire(ctx, lock.Request{Name: "free"})
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "a new lock needs memory")
	for _, lease := range []lock.Lease{long, permit} {
		renewed, err := s.Renew(ctx, lease.Key, lease.Token, time.Hour)
		require.NoError(t, err)
		require.Equal(t, lease.Token, renewed.Token)
	}
	for _, lease := range []lock.Lease{long, short, permit} {
		_, err = s.Release(ctx, lease.Key, lease.Token)
		require.NoError(t, err, lease.Name)
	}
	_, err = s.Force(ctx, forced.Key)
	require.NoError(t, err)
	_, err = s.Renew(ctx, forced.Key, forced.Token, time.Minute)
	require.ErrorIs(t, err, lock.ErrNotHeld)
}

// By default, go-redis ignores the deadline of a context. If go-redis obeys the deadline, the
// server may still run the script later. Then Acquire must release the lease.
func holdsNothingAfterTheDeadline(t *testing.T) {
	r := redistest.Single(t)
	s := openStore(t, r)
	_, err := s.Acquire(t.Context(), lock.Request{Name: redistest.Name("warm")}) // loads the scripts
	require.NoError(t, err)

	// The clean-up succeeds only if the server resumes before the clean-up times out. A busy
	// machine may resume it too late, so the test tries up to 10 times.
	for range 10 {
		name := redistest.Name("lock")
		require.NoError(t, r.Server.Pause())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		started := time.Now()
		time.AfterFunc(60*time.Millisecond, func() {
			_ = r.Server.Resume() // the server then runs the commands that it received
		})
		_, err = s.Acquire(ctx, lock.Request{Name: name, TTL: time.Minute})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(started), failLimit)
		require.NoError(t, r.Server.Resume())
		state, err := s.Inspect(t.Context(), lock.Key{Name: name})
		require.NoError(t, err)
		if !state.Held {
			return
		}
	}
	require.Fail(t, "the lease of the failed call was never released")
}
