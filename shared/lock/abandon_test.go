package lock

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const patient = 5 * time.Second // a call timeout that is enough for a busy machine

func normalize(t *testing.T, req Request) Request {
	t.Helper()
	req, err := req.Normalize()
	require.NoError(t, err)
	return req
}

// onEachRedis runs a test in both modes on a single server, a cluster and miniredis.
func onEachRedis(t *testing.T, test func(*testing.T, *Redis, Request)) {
	t.Helper()
	for _, mode := range []Mode{Exclusive, Shared} {
		t.Run(string(mode), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
				s := NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: patient}))
				t.Cleanup(func() { _ = s.Close() })
				test(t, s, normalize(t, Request{Name: redistest.Name("lock"), Mode: mode, TTL: time.Minute}))
			})
		})
	}
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	t.Run("releases only the lease of its own call", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, s *Redis, req Request) {
			_, err := s.try(t.Context(), req, "call", tryOptions{})
			require.NoError(t, err)
			s.abandon(t.Context(), req, "another call")
			state, err := s.Inspect(t.Context(), req.Key())
			require.NoError(t, err)
			require.True(t, state.Held)

			s.abandon(t.Context(), req, "call")
			state, err = s.Inspect(t.Context(), req.Key())
			require.NoError(t, err)
			require.False(t, state.Held)
		})
	})

	t.Run("failed call that repeats an acquire: keeps the lease of the first call", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, s *Redis, req Request) {
			first, err := s.Acquire(t.Context(), req)
			require.NoError(t, err)
			_, err = s.try(t.Context(), req, "second call", tryOptions{}) // assume that the reply is lost
			require.NoError(t, err)
			s.abandon(t.Context(), req, "second call")
			state, err := s.Inspect(t.Context(), req.Key())
			require.NoError(t, err)
			require.Len(t, state.Holders, 1)
			require.Equal(t, first.Fence, state.Holders[0].Fence)
		})
	})

	t.Run("canceled call that repeats an acquire: keeps the lease of the first call", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, s *Redis, req Request) {
			first, err := s.Acquire(t.Context(), req)
			require.NoError(t, err)
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = s.Acquire(canceled, req)
			require.ErrorIs(t, err, context.Canceled)
			renewed, err := s.Renew(t.Context(), first.Key, req.Token, time.Minute)
			require.NoError(t, err)
			require.Equal(t, first.Fence, renewed.Fence)
		})
	})
}

// openQuorum returns a quorum and the three Redis servers that it uses.
func openQuorum(t *testing.T, callTimeout time.Duration) (*Quorum, []*redistest.Redis) {
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
	q, err := NewQuorum(conns)
	require.NoError(t, err)
	return q, nodes
}

func TestQuorumNodes(t *testing.T) {
	t.Parallel()
	t.Run("a node lost its data: a repeated acquire keeps the fence", func(t *testing.T) {
		t.Parallel()
		q, nodes := openQuorum(t, patient)
		for i := range 9 {
			req := normalize(t, Request{Name: redistest.Name("lock"), Token: rand.Text(), TTL: time.Minute})
			first, err := q.Acquire(t.Context(), req)
			require.NoError(t, err)
			for _, node := range q.nodes { // the slowest node may grant after Acquire has returned
				require.Eventually(t, func() bool {
					state, err := node.Inspect(t.Context(), req.Key())
					return err == nil && state.Held
				}, patient, time.Millisecond)
			}
			require.NoError(t, nodes[i%3].Client.FlushAll(t.Context()).Err())
			again, err := q.Acquire(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, first.Fence, again.Fence)
			require.True(t, again.Reacquired)
		}
	})

	t.Run("two nodes refuse: a late grant by the third node is released", func(t *testing.T) {
		t.Parallel()
		q, nodes := openQuorum(t, NodeTimeout)
		_, err := q.Acquire(t.Context(), Request{Name: "warm"}) // opens the connections
		require.NoError(t, err)
		req := Request{Name: "report", TTL: time.Minute}
		for _, node := range q.nodes[:2] {
			require.Eventually(t, func() bool {
				_, err := node.Acquire(t.Context(), req)
				return err == nil
			}, patient, 10*time.Millisecond)
		}
		require.NoError(t, nodes[2].Server.Pause())
		resume := time.AfterFunc(100*time.Millisecond, func() { _ = nodes[2].Server.Resume() })
		defer resume.Stop()

		_, err = q.Acquire(t.Context(), req)
		require.Error(t, err)
		require.Eventually(t, func() bool {
			state, err := q.nodes[2].Inspect(t.Context(), req.Key())
			return err == nil && !state.Held
		}, patient, 10*time.Millisecond)
	})
}
