package delayqueue

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// RedisInfo are figures of the Redis command INFO (https://redis.io/docs/latest/commands/info/). In
// a cluster memory is that of the fullest master, and the others are sums.
type RedisInfo struct {
	UsedMemory, MaxMemory            float64 // bytes; MaxMemory 0 is no limit
	ConnectedClients, BlockedClients float64
	EvictedKeys, OpsPerSecond        float64
}

// RedisInfo asks every master. Errors: store_unavailable.
func (q *Queues) RedisInfo(ctx context.Context) (RedisInfo, error) {
	var total RedisInfo
	var mu sync.Mutex
	add := func(ctx context.Context, node redis.Cmdable) error {
		text, err := node.Info(ctx).Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		total.add(parseInfo(text))
		return nil
	}
	err := q.conn.Do(ctx, func(ctx context.Context) error {
		if cluster, is := q.conn.Client().(*redis.ClusterClient); is {
			return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
				return add(ctx, node)
			})
		}
		return add(ctx, q.conn.Client())
	})
	return total, err
}

func (i *RedisInfo) add(n map[string]float64) {
	if n["used_memory"] > i.UsedMemory {
		i.UsedMemory, i.MaxMemory = n["used_memory"], n["maxmemory"]
	}
	i.ConnectedClients += n["connected_clients"]
	i.BlockedClients += n["blocked_clients"]
	i.EvictedKeys += n["evicted_keys"]
	i.OpsPerSecond += n["instantaneous_ops_per_sec"]
}

// parseInfo reads the numbers of INFO's lines.
func parseInfo(text string) map[string]float64 {
	out := make(map[string]float64)
	for line := range strings.SplitSeq(text, "\n") {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.ParseFloat(value, 64); found && err == nil {
			out[name] = n
		}
	}
	return out
}
