package redisconn

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Info holds the figures of the Redis command INFO that Sluice reports
// (https://redis.io/docs/latest/commands/info/). A figure that the server does not report is zero.
type Info struct {
	// UsedMemory and MaxMemory are in bytes. A MaxMemory of 0 means that memory is not limited.
	UsedMemory, MaxMemory int64
	// EvictionPolicy is maxmemory_policy, for example "noeviction".
	EvictionPolicy string
	// ConnectedClients counts connections. BlockedClients counts connections in a blocking command.
	ConnectedClients, BlockedClients int64
	// EvictedKeys counts evictions since the server's start.
	EvictedKeys int64
	// OpsPerSecond is the number of commands per second.
	OpsPerSecond int64
}

// Info queries every master and returns the figures of each: one element, or one per shard of a
// cluster. It has the deadline and the errors of [Conn.Run].
func (c *Conn) Info(ctx context.Context) ([]Info, error) {
	var (
		mu    sync.Mutex
		nodes []Info
	)
	query := func(ctx context.Context, node redis.Cmdable) error {
		sections, err := node.InfoMap(ctx).Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, newInfo(sections))
		return nil
	}
	err := c.Do(ctx, func(ctx context.Context) error {
		if cluster, ok := c.client.(*redis.ClusterClient); ok {
			return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
				return query(ctx, node)
			})
		}
		return query(ctx, c.client)
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

func newInfo(sections map[string]map[string]string) Info {
	number := func(section, name string) int64 {
		n, err := strconv.ParseInt(sections[section][name], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return Info{
		UsedMemory:       number("Memory", "used_memory"),
		MaxMemory:        number("Memory", "maxmemory"),
		EvictionPolicy:   sections["Memory"]["maxmemory_policy"],
		ConnectedClients: number("Clients", "connected_clients"),
		BlockedClients:   number("Clients", "blocked_clients"),
		EvictedKeys:      number("Stats", "evicted_keys"),
		OpsPerSecond:     number("Stats", "instantaneous_ops_per_sec"),
	}
}

// MemoryShare returns the share of MaxMemory in use, or 0 if memory is not limited.
func (i Info) MemoryShare() float64 {
	if i.MaxMemory == 0 {
		return 0
	}
	return float64(i.UsedMemory) / float64(i.MaxMemory)
}

// Total combines the figures of all masters. The memory figures are from the master that uses the
// most memory; the other figures are sums.
func Total(nodes []Info) Info {
	var total Info
	for _, node := range nodes {
		if node.UsedMemory > total.UsedMemory {
			total.UsedMemory, total.MaxMemory = node.UsedMemory, node.MaxMemory
		}
		total.ConnectedClients += node.ConnectedClients
		total.BlockedClients += node.BlockedClients
		total.EvictedKeys += node.EvictedKeys
		total.OpsPerSecond += node.OpsPerSecond
	}
	return total
}
