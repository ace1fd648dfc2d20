package delayqueue

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A queue is split into shards, and the ID of a job determines its shard. When the shard count
// changes, existing jobs stay in their shards. Redis therefore stores every shard count that was
// ever in use. A lookup checks the shard that each of these counts gives for the job's ID.

// layoutKey is the key of the set of shard counts.
const layoutKey = "{sluice:layout}:shards"

// layoutMaxAge is the maximum age of the cached shard counts. It is limited because another
// deployment may add a shard count.
const layoutMaxAge = time.Minute

// layouts caches the shard counts.
type layouts struct {
	mu     sync.RWMutex
	counts []int
	readAt time.Time
}

// Register adds this deployment's shard count to the stored shard counts and caches all of them.
// Dispatchers call it when they start. Other methods that need the shard counts call it if the
// cached counts are older than a minute. Errors: [ErrUnavailable].
func (q *Queues) Register(ctx context.Context) error {
	var added *redis.IntCmd
	var members *redis.StringSliceCmd
	err := q.conn.Do(ctx, func(ctx context.Context) error {
		// This is not a transaction, because the error EXECABORT would hide that Redis is out of
		// memory or read-only.
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			added, members = p.SAdd(ctx, layoutKey, q.cfg.Shards), p.SMembers(ctx, layoutKey)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}

	if added.Val() == 1 {
		if err := q.extendPauses(ctx); err != nil {
			return err
		}
	}

	var counts []int
	for _, m := range members.Val() {
		if n, err := strconv.Atoi(m); err == nil && n > 0 && n <= MaxShards {
			counts = append(counts, n)
		}
	}
	q.layouts.mu.Lock()
	defer q.layouts.mu.Unlock()
	q.layouts.counts, q.layouts.readAt = counts, time.Now()
	return nil
}

// AllShards returns the highest shard count that is or was in use. A dispatcher serves this number
// of shards of each queue.
func (q *Queues) AllShards() int {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return max(q.cfg.Shards, slices.Max(append([]int{1}, q.layouts.counts...)))
}

// allShards returns the result of AllShards. It calls Register first if the shard counts are not
// cached or are too old. If Register fails, allShards uses the old counts, because a Redis that is
// out of memory rejects the write of Register but can still be read.
func (q *Queues) allShards(ctx context.Context) (int, error) {
	if !q.registered() {
		if err := q.Register(ctx); err != nil && q.layoutCount() == 0 {
			return 0, err
		}
	}
	return q.AllShards(), nil
}

func (q *Queues) registered() bool {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return len(q.layouts.counts) > 0 && time.Since(q.layouts.readAt) < layoutMaxAge
}

// layoutCount returns the number of shard counts that are or were in use.
func (q *Queues) layoutCount() int {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return len(q.layouts.counts)
}

// eachShard calls do for each shard in sequence, with the deadline and the errors of
// [redisconn.Conn.Do]. It stops at the first error.
func (q *Queues) eachShard(ctx context.Context, do func(ctx context.Context, shard int) error) error {
	shards, err := q.allShards(ctx)
	if err != nil {
		return err
	}
	for shard := range shards {
		if err := q.conn.Do(ctx, func(ctx context.Context) error { return do(ctx, shard) }); err != nil {
			return err
		}
	}
	return nil
}

// shardOf returns the shard of a new job.
func (q *Queues) shardOf(id string) int { return shardOf(id, q.cfg.Shards) }

// candidates returns the shards that may contain a job: first its shard under the current shard
// count, then its shards under the other shard counts.
func (q *Queues) candidates(id string) []int {
	out := []int{q.shardOf(id)}
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	for _, n := range q.layouts.counts {
		if s := shardOf(id, n); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func shardOf(id string, shards int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(shards))
}
