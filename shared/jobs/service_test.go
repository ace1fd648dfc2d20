package jobs

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// fixture is one process with its own stores.
type fixture struct {
	*process
	t       *testing.T
	cluster *cluster
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := startCluster(t)
	return &fixture{process: c.start(t, c.table(t)), t: t, cluster: c}
}

func (f *fixture) flush() {
	f.t.Helper()
	require.NoError(f.t, f.cluster.redis.Client.FlushAll(f.t.Context()).Err())
}

// push enqueues a job and requires that it is new.
func (f *fixture) push(j delayqueue.Job) {
	f.t.Helper()
	j.Payload = json.RawMessage(`1`)
	r := f.Enqueue(f.t.Context(), queue, []delayqueue.Job{j})[0]
	require.NoError(f.t, r.Err)
	require.False(f.t, r.Enqueued.Duplicate)
	awaitDue()
}

// pushToOutbox enqueues a job while Redis is unavailable.
func (f *fixture) pushToOutbox(j delayqueue.Job) {
	f.t.Helper()
	withoutRedis(func() { f.push(j) }, f.process)
}

// sendDue sends the due jobs of the outbox and returns their IDs. If accept is true, the
// fake SQS accepts every job; otherwise it refuses every job.
func (f *fixture) sendDue(accept bool) []string {
	f.t.Helper()
	ids := []string{}
	sending := Sending{
		Queues: map[string]string{queue: "url"}, Lease: time.Minute,
		Send: func(_ context.Context, name string, jobs []delayqueue.Claimed) []bool {
			require.Equal(f.t, queue, name)
			accepted := make([]bool, len(jobs))
			for i, j := range jobs {
				require.Equal(f.t, 1, j.Attempt)
				ids, accepted[i] = append(ids, j.ID), accept
			}
			return accepted
		},
	}
	_, err := f.SendDue(f.t.Context(), f.t.Context(), sending)
	require.NoError(f.t, err)
	return ids
}

func (f *fixture) move() int {
	f.t.Helper()
	n, err := f.MoveToRedis(f.t.Context(), time.Minute)
	require.NoError(f.t, err)
	return n
}

// claim claims the due jobs in Redis and returns their IDs. If the queue is paused, it requeues the
// jobs and returns no ID.
func (f *fixture) claim() []string {
	f.t.Helper()
	claims, err := f.queues.Claim(f.t.Context(), queue, 0, 100, time.Minute)
	require.NoError(f.t, err)
	ids := []string{}
	if len(claims.Jobs) == 0 {
		return ids
	}
	allowed, err := f.MaySend(f.t.Context(), queue, 0, claims.Now)
	require.NoError(f.t, err)
	if !allowed {
		requeue(f.t.Context(), f.process, claims.Jobs)
		return ids
	}
	for _, j := range claims.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func (f *fixture) inOutbox(id string) bool {
	f.t.Helper()
	item, err := f.outbox.Find(f.t.Context(), queue, id)
	require.NoError(f.t, err)
	return item != nil
}

func (f *fixture) state(id string) delayqueue.State {
	f.t.Helper()
	info, err := f.Get(f.t.Context(), queue, id)
	require.NoError(f.t, err)
	return info.State
}

func TestStats(t *testing.T) {
	f := newFixture(t)
	f.push(delayqueue.Job{ID: "a", Delay: far})
	f.pushToOutbox(delayqueue.Job{ID: "b", Delay: far})
	stats, err := f.Stats(t.Context(), queue)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Scheduled)
	require.EqualValues(t, 1, *stats.Outbox)

	require.NoError(t, f.Pause(t.Context(), queue, time.Time{}))
	f.dynamoDown = true
	stats, err = f.Stats(t.Context(), queue)
	require.NoError(t, err)
	require.Nil(t, stats.Outbox)
	require.True(t, stats.Paused, "Redis has the pause, too")
}

func TestConcurrently(t *testing.T) {
	boom := func() { panic("boom") }
	for name, halves := range map[string][2]func(){
		"first": {boom, func() {}}, "second": {func() {}, boom}, "both": {boom, boom},
	} {
		t.Run("a panic of "+name+" reaches the caller", func(t *testing.T) {
			require.Panics(t, func() { concurrently(halves[0], halves[1]) })
		})
	}
}

func TestWithoutOutbox(t *testing.T) {
	f := newFixture(t)
	alone := New(f.queues, nil, f.log)
	results := alone.Enqueue(t.Context(), queue, []delayqueue.Job{
		{ID: "a", Payload: json.RawMessage(`1`)}, {ID: "b", Payload: json.RawMessage(`1`), Durable: true},
	})
	require.NoError(t, results[0].Err)
	require.ErrorContains(t, results[1].Err, "needs an outbox")
	require.NoError(t, alone.Pause(t.Context(), queue, time.Time{}))
	stats, err := alone.Stats(t.Context(), queue)
	require.NoError(t, err)
	require.True(t, stats.Paused)
	require.NoError(t, alone.Resume(t.Context(), queue))
	_, err = alone.Cancel(t.Context(), queue, "a")
	require.NoError(t, err)
	_, err = alone.Get(t.Context(), queue, "b")
	require.ErrorIs(t, err, delayqueue.ErrNotFound)
}
