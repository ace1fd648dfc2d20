package delayqueue

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// layouts are the shard counts that are or were in use.
type layouts struct {
	mu     sync.RWMutex
	counts []int
	read   time.Time
}

// refreshLayouts is how old the known shard counts may be: another deployment may have changed
// them.
const refreshLayouts = time.Minute

func (q *Queues) setLayouts(counts []int) {
	q.layouts.mu.Lock()
	defer q.layouts.mu.Unlock()
	q.layouts.counts, q.layouts.read = counts, time.Now()
}

func (q *Queues) registered() bool {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return len(q.layouts.counts) > 0 && time.Since(q.layouts.read) < refreshLayouts
}

// layoutCount is how many shard counts are or were in use.
func (q *Queues) layoutCount() int {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return len(q.layouts.counts)
}

// AllShards is the highest shard count that is or was in use: a dispatcher serves them all.
func (q *Queues) AllShards() int {
	q.layouts.mu.RLock()
	defer q.layouts.mu.RUnlock()
	return max(q.cfg.Shards, slices.Max(append([]int{1}, q.layouts.counts...)))
}

// shardOf is where a new job goes: a function of its id only.
func (q *Queues) shardOf(id string) int { return shardOf(id, q.cfg.Shards) }

// candidates are the shards in which a job may be: where it would go now, then where it would have
// gone before.
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
