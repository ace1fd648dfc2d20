package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func TestLocksOnRedisConform(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) { locktest.Run(t, open(t, r)) })
}

func TestLocksOnAQuorumConform(t *testing.T) {
	t.Parallel()
	q, _ := quorum(t, 5*time.Second)
	locktest.Run(t, q)
}

// quorum is one of three nodes, and the nodes.
func quorum(t *testing.T, timeout time.Duration) (*lock.Quorum, []*redistest.Redis) {
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
	q, err := lock.NewQuorum(conns)
	require.NoError(t, err)
	return q, nodes
}
