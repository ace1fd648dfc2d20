package delayqueue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestEnqueue(t *testing.T) {
	t.Parallel()
	t.Run("each job succeeds or fails independently", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{})
		put(t, q, "orders", simple("exists", time.Hour))

		results := q.Enqueue(t.Context(), "orders", []Job{
			simple("new", time.Hour), simple("exists", time.Hour), {ID: "invalid"}, simple("new", time.Hour),
			{ID: "large", Payload: make([]byte, MaxPayload+1)}, {Payload: []byte("1")},
		})

		require.Len(t, results, 6)
		require.NoError(t, results[0].Err)
		require.False(t, results[0].Enqueued.Duplicate)
		require.True(t, results[1].Enqueued.Duplicate)
		require.Equal(t, []string{"payload"}, invalidFields(t, results[2].Err))
		require.Equal(t, "invalid", results[2].Job.ID)
		require.True(t, results[3].Enqueued.Duplicate, "an earlier job of the batch has the same ID")
		require.ErrorIs(t, results[4].Err, ErrPayloadTooLarge)
		require.NoError(t, results[5].Err)
		require.NotEmpty(t, results[5].Job.ID)
		require.Equal(t, results[5].Job.ID, results[5].Enqueued.ID)
	})

	t.Run("rejects an invalid job", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{})
		job := simple("a", 0)
		job.MaxAttempts = -3
		_, err := q.Push(t.Context(), "orders", job)
		require.Equal(t, []string{"max_attempts"}, invalidFields(t, err))
		_, err = q.Get(t.Context(), "orders", "a")
		require.ErrorIs(t, err, ErrNotFound)
	})

	t.Run("EnqueueAccepted enqueues a job that has expired", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{})
		job := simple("a", 0)
		job.RunAt, job.ExpiresAt = time.Now(), time.Now().Add(-time.Second)
		results := q.EnqueueAccepted(t.Context(), "orders", []Job{job})
		require.NoError(t, results[0].Err)
		require.Eventually(t, func() bool {
			require.Empty(t, claimAll(t, q, "orders"))
			return state(t, q, "orders", "a") == Expired
		}, 5*time.Second, time.Millisecond)
	})

	// hyperf #5259 and laravel #27862: the payload was the member of the sorted set, so a job
	// overwrote an earlier job with an equal payload.
	t.Run("jobs with equal payloads are separate jobs", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{})
		for _, id := range []string{"a", "b"} {
			put(t, q, "orders", Job{ID: id, Payload: []byte(`{"same":true}`), MaxAttempts: 1})
		}
		claimSome(t, q, "orders", 2)
	})

	// redis #1071, bull #244: large due times lost digits, or overflowed and made the job due
	// immediately.
	t.Run("a due time in ten years is exact to the millisecond", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			q, queue := newQueues(t, r, Config{}), redistest.Name("years")
			at := time.Now().Add(MaxDelay - time.Hour).UTC().Truncate(time.Millisecond)
			e := put(t, q, queue, Job{ID: "far", Payload: []byte("1"), RunAt: at, MaxAttempts: 1})
			require.Equal(t, at, e.RunAt)
			info, err := q.Get(t.Context(), queue, "far")
			require.NoError(t, err)
			require.Equal(t, at, info.RunAt)
			require.Empty(t, claimAll(t, q, queue))
			score, err := r.Client.ZScore(t.Context(), placeOf(queue, q.shardOf("far")).due, "far").Result()
			require.NoError(t, err)
			require.Equal(t, at.UnixMilli(), int64(score))
		})
	})

	// sidekiq #2883, #5899: jobs were lost when Redis was out of memory. Push must succeed only
	// after Redis has stored the job, and a failed Push must change nothing.
	t.Run("a Redis that is out of memory accepts nothing and loses nothing", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		q := newQueues(t, r, Config{})
		put(t, q, "orders", simple("before", 0))
		require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
		_, err := q.Push(t.Context(), "orders", simple("during", 0))
		require.ErrorIs(t, err, ErrUnavailable)
		require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "0").Err())
		_, err = q.Get(t.Context(), "orders", "during")
		require.ErrorIs(t, err, ErrNotFound)
		claimSome(t, q, "orders", 1)
	})

	// bullmq #2734: a delayed job took 2.2 KB of Redis memory.
	t.Run("a pending job of 200 bytes takes less than 600 bytes of memory", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		q := newQueues(t, r, Config{})
		used := func() int64 {
			text, err := r.Client.Info(t.Context(), "memory").Result()
			require.NoError(t, err)
			var n int64
			_, rest, _ := strings.Cut(text, "used_memory:")
			_, err = fmt.Sscanf(rest, "%d", &n)
			require.NoError(t, err)
			return n
		}
		const jobs = 20_000
		put(t, q, "orders", simple("first", time.Hour))
		before := used()
		for n := 0; n < jobs; n += MaxBatch {
			batch := make([]Job, MaxBatch)
			for i := range batch {
				batch[i] = Job{ID: fmt.Sprintf("job-%d", n+i), Payload: []byte(`"` + strings.Repeat("x", 198) + `"`),
					Delay: time.Hour, MaxAttempts: 1}
			}
			putAll(t, q, "orders", batch)
		}
		require.Less(t, (used()-before)/jobs, int64(600))
	})

	t.Run("a large payload is stored compressed", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		q := newQueues(t, r, Config{})
		payload := `{"text":"` + strings.Repeat("some text that repeats, ", 2000) + `"}`
		put(t, q, "orders", Job{ID: "big", Payload: []byte(payload), MaxAttempts: 1})
		record, err := r.Client.HGet(t.Context(), placeOf("orders", q.shardOf("big")).jobs, "big").Result()
		require.NoError(t, err)
		require.Less(t, len(record), len(payload)/10)
		info, err := q.Get(t.Context(), "orders", "big")
		require.NoError(t, err)
		require.JSONEq(t, payload, string(info.Payload))
		require.True(t, put(t, q, "orders", Job{ID: "big", Payload: []byte(payload), MaxAttempts: 1}).Duplicate)
	})
}
