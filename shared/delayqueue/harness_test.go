package delayqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/internal/luascript"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// clocked is Queues with a clock that the test sets: the scripts read the time from two keys
// instead of calling TIME. The two keys are not in the hash slot of the queue, so a Redis Cluster
// would reject the scripts.
type clocked struct {
	*Queues

	client redis.UniversalClient
	nowMS  int64
}

// start is the initial time of the clock, in milliseconds since the epoch.
const start = int64(1_750_000_000_000)

func newClocked(t testing.TB, r *redistest.Redis, cfg Config) *clocked {
	t.Helper()
	q := newQueues(t, r, cfg)
	for name, script := range map[string]*redisconn.Script{
		"enqueue": &q.scripts.enqueue, "claim": &q.scripts.claim, "accept": &q.scripts.accept,
		"requeue": &q.scripts.requeue, "ack": &q.scripts.ack, "change": &q.scripts.change,
		"maintain": &q.scripts.maintain, "stats": &q.scripts.stats, "redrive": &q.scripts.redrive,
		"recordsent": &q.scripts.recordSent,
	} {
		source := luascript.MustCompose(scriptFiles, "scripts/"+name+".lua").Text
		text := strings.Replace(source, "redis.call('TIME')", "redis.call('MGET', 'test:seconds', 'test:micros')", 1)
		require.NotEqual(t, source, text, name)
		*script = redis.NewScript(text)
	}
	c := &clocked{Queues: q, client: r.Client}
	c.set(t, start)
	return c
}

func (c *clocked) set(t testing.TB, ms int64) {
	t.Helper()
	c.nowMS = ms
	require.NoError(t, c.client.MSet(context.Background(), "test:seconds", strconv.FormatInt(ms/1000, 10),
		"test:micros", strconv.FormatInt(ms%1000*1000, 10)).Err())
}

func newQueues(t testing.TB, r *redistest.Redis, cfg Config) *Queues {
	t.Helper()
	q, err := New(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 10 * time.Second}), cfg)
	require.NoError(t, err)
	return q
}

// where looks for a job in all shards. It returns the names of the sorted sets that contain the
// job's ID, and the job's record.
func where(t testing.TB, client redis.UniversalClient, queue string, shards int,
	id string) (places []string, record string) {
	t.Helper()
	ctx := context.Background()
	for shard := range shards {
		p := placeOf(queue, shard)
		for name, key := range map[string]string{"due": p.due, "leased": p.leased, "awaiting": p.awaiting,
			"dead": p.dead, "done": p.done} {
			if client.ZScore(ctx, key, id).Err() == nil {
				places = append(places, name)
			}
		}
		if text, err := client.HGet(ctx, p.jobs, id).Result(); err == nil {
			record = text
		}
	}
	return places, record
}

// simple returns a job with one attempt that is due after the delay.
func simple(id string, delay time.Duration) Job {
	return Job{ID: id, Payload: []byte(`{"id":"` + id + `"}`), Delay: delay, MaxAttempts: 1, Backoff: DefaultBackoff()}
}

// put enqueues one job.
func put(t testing.TB, q *Queues, queue string, j Job) Enqueued {
	t.Helper()
	enqueued, err := q.Push(context.Background(), queue, j)
	require.NoError(t, err)
	return enqueued
}

// batchOf returns MaxBatch jobs that are due now: job-<first> and the following numbers.
func batchOf(first int) []Job {
	batch := make([]Job, MaxBatch)
	for i := range batch {
		batch[i] = simple(fmt.Sprintf("job-%d", first+i), 0)
	}
	return batch
}

// putAll enqueues a batch of new jobs.
func putAll(t testing.TB, q *Queues, queue string, batch []Job) {
	t.Helper()
	for _, r := range q.Enqueue(context.Background(), queue, batch) {
		require.NoError(t, r.Err)
		require.False(t, r.Enqueued.Duplicate, r.Job.ID)
	}
}

// claimAll claims the due jobs of every shard.
func claimAll(t testing.TB, q *Queues, queue string) []Claimed {
	t.Helper()
	var out []Claimed
	for shard := range q.AllShards() {
		c, err := q.Claim(context.Background(), queue, shard, 100, 30*time.Second)
		require.NoError(t, err)
		out = append(out, c.Jobs...)
	}
	return out
}

// claimSome claims until it has n jobs. It repeats Claim because a job without a delay may not be
// due before the next millisecond.
func claimSome(t testing.TB, q *Queues, queue string, n int) []Claimed {
	t.Helper()
	var out []Claimed
	require.Eventually(t, func() bool {
		out = append(out, claimAll(t, q, queue)...)
		return len(out) >= n
	}, 10*time.Second, time.Millisecond)
	require.Len(t, out, n)
	return out
}
