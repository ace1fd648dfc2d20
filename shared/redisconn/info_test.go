package redisconn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func TestInfo(t *testing.T) {
	t.Parallel()

	t.Run("returns the figures of every master", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			c := open(t, redisconn.Config{URLs: redisconn.SplitList(r.URL), CallTimeout: 5 * time.Second})
			nodes, err := c.Info(t.Context())
			require.NoError(t, err)
			want := 1
			if r.Cluster {
				want = len(r.Nodes)
			}
			require.Len(t, nodes, want)
			for _, node := range nodes {
				require.Positive(t, node.ConnectedClients)
				if !r.Mini { // miniredis reports clients only
					require.Positive(t, node.UsedMemory)
					require.Equal(t, "noeviction", node.EvictionPolicy)
				}
			}
		})
	})

	t.Run("reports the memory limit and its share", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		set(t, r, "maxmemory", "1gb")
		c := open(t, redisconn.Config{URLs: []string{r.URL}, CallTimeout: 5 * time.Second})
		nodes, err := c.Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1<<30, nodes[0].MaxMemory)
		require.InDelta(t, float64(nodes[0].UsedMemory)/(1<<30), nodes[0].MemoryShare(), 1e-9)
		require.Zero(t, redisconn.Info{UsedMemory: 5}.MemoryShare(), "memory without a limit")
	})

	t.Run("unavailable store: returns store_unavailable", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}})
		require.NoError(t, r.Server.Kill())
		_, err := c.Info(t.Context())
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
	})
}

func TestTotal(t *testing.T) {
	t.Parallel()
	total := redisconn.Total([]redisconn.Info{
		{UsedMemory: 6, MaxMemory: 60, ConnectedClients: 1, BlockedClients: 2, EvictedKeys: 3, OpsPerSecond: 4},
		{UsedMemory: 7, MaxMemory: 70, ConnectedClients: 2, BlockedClients: 3, EvictedKeys: 4, OpsPerSecond: 5},
	})
	require.Equal(t, redisconn.Info{
		UsedMemory: 7, MaxMemory: 70, ConnectedClients: 3, BlockedClients: 5, EvictedKeys: 7, OpsPerSecond: 9,
	}, total)
	require.Zero(t, redisconn.Total(nil))
}
