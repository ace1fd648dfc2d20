package lock_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const (
	ttl     = 5 * time.Second
	prompt  = 3 * time.Second // less than ttl, and enough for a busy machine
	patient = 5 * time.Second // a call timeout that is enough for a busy machine
)

// openStore returns a store with a call timeout of 5 s.
func openStore(t testing.TB, r *redistest.Redis) *lock.Redis {
	t.Helper()
	s := lock.NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: patient}))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openProductionStore returns a store with the default call timeout and circuit breaker.
func openProductionStore(t testing.TB, r *redistest.Redis) *lock.Redis {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}})
	require.NoError(t, err)
	s := lock.NewRedis(conn)
	t.Cleanup(func() { _, _ = s.Close(), conn.Close() })
	return s
}

// openQuorum returns a quorum and the three Redis servers that it uses.
func openQuorum(t testing.TB, callTimeout time.Duration) (*lock.Quorum, []*redistest.Redis) {
	t.Helper()
	var conns []*redisconn.Conn
	var nodes []*redistest.Redis
	for range 3 {
		r := redistest.Single(t)
		c, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}, CallTimeout: callTimeout})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		conns, nodes = append(conns, c), append(nodes, r)
	}
	q, err := lock.NewQuorum(conns)
	require.NoError(t, err)
	return q, nodes
}

// onEachRedis runs a test on a single server, on a cluster and on miniredis.
func onEachRedis(t *testing.T, test func(*testing.T, *redistest.Redis, *lock.Redis)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) { test(t, r, openStore(t, r)) })
}

func newToken() string { return rand.Text() }

// hasWaiters returns a condition for require.Eventually: the lock has n waiters.
func hasWaiters(t testing.TB, s *lock.Redis, key lock.Key, n int64) func() bool {
	t.Helper()
	return func() bool {
		state, err := s.Inspect(t.Context(), key)
		return err == nil && state.Waiters == n
	}
}
