package lock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func normal(t *testing.T, q Request) Request {
	t.Helper()
	q, err := q.Normalize()
	require.NoError(t, err)
	return q
}

// A call that asked again with a token that holds the lock, and gave up, must not take away the
// lease from before.
func TestAReacquireThatGaveUpLeavesTheLeaseFromBefore(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Exclusive, Shared} {
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			l := NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 5 * time.Second}))
			t.Cleanup(func() { _ = l.Close() })
			q := normal(t, Request{Name: "report", Mode: mode, TTL: time.Minute})
			first, err := l.Acquire(t.Context(), q)
			require.NoError(t, err)
			_, err = l.try(t.Context(), q, "second call", false) // carried out, and its answer lost
			require.NoError(t, err)
			l.giveUp(t.Context(), q, "second call")
			s, err := l.Inspect(t.Context(), Lock, "report")
			require.NoError(t, err)
			require.Len(t, s.Holders, 1)
			require.Equal(t, first.Fence, s.Holders[0].Fence)
		})
	}
}

func TestACallThatGaveUpGivesBackWhatItGot(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Exclusive, Shared} {
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			l := NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 5 * time.Second}))
			t.Cleanup(func() { _ = l.Close() })
			q := normal(t, Request{Name: "report", Mode: mode, TTL: time.Minute})
			_, err := l.try(t.Context(), q, "call", false)
			require.NoError(t, err)
			l.giveUp(t.Context(), q, "another call")
			s, err := l.Inspect(t.Context(), Lock, "report")
			require.NoError(t, err)
			require.True(t, s.Held, "that is not its")
			l.giveUp(t.Context(), q, "call")
			s, err = l.Inspect(t.Context(), Lock, "report")
			require.NoError(t, err)
			require.False(t, s.Held)
		})
	}
}

func smallQuorum(t *testing.T, timeout time.Duration) (*Quorum, []*redistest.Redis) {
	t.Helper()
	var conns []*redisconn.Conn
	var nodes []*redistest.Redis
	for range 3 {
		r := redistest.Single(t)
		c, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}, CallTimeout: timeout})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		conns, nodes = append(conns, c), append(nodes, r)
	}
	m, err := NewQuorum(conns)
	require.NoError(t, err)
	return m, nodes
}

func TestATokenThatAsksAgainKeepsItsFenceAfterANodeLostItsData(t *testing.T) {
	t.Parallel()
	m, nodes := smallQuorum(t, 5*time.Second)
	for i := range 9 {
		q := normal(t, Request{Name: redistest.Name("lock"), TTL: time.Minute})
		first, err := m.Acquire(t.Context(), q)
		require.NoError(t, err)
		for _, n := range m.nodes { // a straggler's grant comes soon
			require.Eventually(t, func() bool {
				s, err := n.Inspect(t.Context(), Lock, q.Name)
				return err == nil && s.Held
			}, 5*time.Second, time.Millisecond)
		}
		require.NoError(t, nodes[i%3].Client.FlushAll(t.Context()).Err())
		again, err := m.Acquire(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, first.Fence, again.Fence)
		require.True(t, again.Reacquired)
	}
}

// A node that was slow, while the others refused, must not keep what it granted late.
func TestWhatANodeGrantsAfterTheOthersRefusedIsGivenBack(t *testing.T) {
	t.Parallel()
	m, nodes := smallQuorum(t, NodeTimeout)
	warm, err := m.Acquire(t.Context(), normal(t, Request{Name: "warm"})) // connections are there
	require.NoError(t, err)
	require.Positive(t, warm.Fence)
	for _, n := range m.nodes[:2] {
		require.Eventually(t, func() bool {
			_, err := n.Acquire(t.Context(), normal(t, Request{Name: "report", TTL: time.Minute}))
			return err == nil
		}, 5*time.Second, 10*time.Millisecond)
	}
	require.NoError(t, nodes[2].Server.Pause())
	resumed := time.AfterFunc(100*time.Millisecond, func() { _ = nodes[2].Server.Resume() })
	defer resumed.Stop()
	_, err = m.Acquire(t.Context(), normal(t, Request{Name: "report", TTL: time.Minute}))
	require.Error(t, err)
	require.Eventually(t, func() bool {
		s, err := m.nodes[2].Inspect(t.Context(), Lock, "report")
		return err == nil && !s.Held
	}, 5*time.Second, 10*time.Millisecond)
}
