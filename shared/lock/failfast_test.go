package lock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// conn is a connection as the function has it.
func conn(t *testing.T, url string) *redisconn.Conn {
	t.Helper()
	c, err := redisconn.Open(redisconn.Config{URLs: []string{url}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func number(n int64) string { return fmt.Sprintf("%016d", n) }

func TestWhenRedisCannotServeEveryCallFailsWithin500Milliseconds(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*testing.T, *redistest.Redis){
		"it is dead": func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Kill()) },
		"it hangs":   func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Pause()) },
		"it is read-only": func(t *testing.T, r *redistest.Redis) {
			require.NoError(t, r.Client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Single(t)
			l := lock.NewRedis(conn(t, r.URL))
			t.Cleanup(func() { _ = l.Close() })
			held, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "held", TTL: time.Minute}))
			require.NoError(t, err)
			breakIt(t, r)
			for call, do := range map[string]func() error{
				"acquire": func() error {
					_, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "free"}))
					return err
				},
				"acquire, waiting": func() error {
					_, err := l.Acquire(t.Context(), locktest.Request(t,
						lock.Request{Name: "other", Wait: lock.MaxWait}))
					return err
				},
				"renew": func() error {
					_, err := l.Renew(t.Context(), lock.Lock, "held", held.Token, ttl)
					return err
				},
				"release": func() error { _, err := l.Release(t.Context(), lock.Lock, "held", held.Token); return err },
				"force":   func() error { _, err := l.Force(t.Context(), lock.Lock, "held"); return err },
			} {
				started := time.Now()
				err := do()
				require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%s: %v", call, err)
				require.Less(t, time.Since(started), 500*time.Millisecond, call)
			}
		})
	}
}

// A full Redis must not keep what is to be given back, nor take from a holder what it has: only
// what needs room is refused.
func TestOnAFullRedisALockIsRenewedReleasedAndForcedButNotGranted(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := lock.NewRedis(conn(t, r.URL))
	t.Cleanup(func() { _ = l.Close() })
	grant := func(kind lock.Kind, name string, capacity int64) string {
		lease, err := l.Acquire(t.Context(), locktest.Request(t,
			lock.Request{Kind: kind, Name: name, TTL: time.Minute, Capacity: capacity}))
		require.NoError(t, err)
		return lease.Token
	}
	// Both ways in which a release keeps the state: for a shorter, and for a longer time than the
	// lease had left.
	short, err := l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "short", TTL: time.Second}))
	require.NoError(t, err)
	held, forced, permit := grant(lock.Lock, "held", 0), grant(lock.Lock, "forced", 0), grant(lock.Semaphore, "pool", 3)
	require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())

	_, err = l.Acquire(t.Context(), locktest.Request(t, lock.Request{Name: "free"}))
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "a new lock takes memory")
	renewed, err := l.Renew(t.Context(), lock.Lock, "held", held, time.Hour)
	require.NoError(t, err)
	require.Equal(t, held, renewed.Token)
	_, err = l.Renew(t.Context(), lock.Semaphore, "pool", permit, time.Hour)
	require.NoError(t, err)
	for name, token := range map[string]string{"held": held, "short": short.Token} {
		_, err = l.Release(t.Context(), lock.Lock, name, token)
		require.NoError(t, err, name)
	}
	_, err = l.Release(t.Context(), lock.Semaphore, "pool", permit)
	require.NoError(t, err)
	_, err = l.Force(t.Context(), lock.Lock, "forced")
	require.NoError(t, err)
	_, err = l.Renew(t.Context(), lock.Lock, "forced", forced, time.Minute)
	require.Equal(t, fault.LockNotHeld, fault.CodeOf(err))
}
