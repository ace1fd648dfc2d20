package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// durable returns a durable job, which is stored in Redis and in the outbox.
func durable(id string, delay time.Duration) delayqueue.Job {
	return delayqueue.Job{ID: id, Payload: []byte("1"), Delay: delay, Durable: true}
}

// counts returns the number of times that each job of the queue "orders" was sent.
func (h *harness) counts() map[string]int {
	out := make(map[string]int)
	for _, j := range h.sender.of("orders") {
		out[j.ID]++
	}
	return out
}

func (h *harness) flush() {
	h.Helper()
	require.NoError(h, h.redis.Client.FlushAll(h.Context()).Err())
}

func TestRunWithoutRedis(t *testing.T) {
	t.Parallel()
	t.Run("sends the due jobs of the outbox, once", func(t *testing.T) {
		t.Parallel()
		h := setupStores(t)
		end, result := h.run()
		h.working()
		h.enqueue("orders", durable("durable", 500*time.Millisecond))
		require.NoError(t, h.redis.Server.Kill())
		h.push("orders", 0, "plain")
		h.push("orders", time.Hour, "later")
		require.Eventually(t, h.sentTo("orders", 2), patience, time.Millisecond)

		require.NoError(t, h.redis.Server.Restart(t.Context()))
		require.Eventually(t, func() bool {
			info, err := h.queues.Get(t.Context(), "orders", "later")
			return err == nil && info.State == delayqueue.Scheduled
		}, patience, time.Millisecond)
		h.push("orders", 0, "after")
		require.Eventually(t, h.sentTo("orders", 3), patience, time.Millisecond)
		require.Equal(t, map[string]int{"durable": 1, "plain": 1, "after": 1}, h.counts())
		end()
		require.Equal(t, int64(3), result().Sent)
	})

	t.Run("does not send the jobs of a paused queue", func(t *testing.T) {
		t.Parallel()
		h := setupStores(t)
		end, result := h.run()
		h.working()
		h.enqueue("orders", durable("durable", 100*time.Millisecond))
		require.NoError(t, h.jobs.Pause(t.Context(), "orders", time.Time{}))
		require.NoError(t, h.redis.Server.Kill())
		h.push("orders", 0, "plain")
		h.push("emails", 0, "sentinel")
		require.Eventually(t, h.sentTo("emails", 1), patience, time.Millisecond)
		require.Error(t, h.jobs.Resume(t.Context(), "orders"), "Redis is unavailable")
		require.Eventually(t, h.sentTo("orders", 2), patience, time.Millisecond, "DynamoDB stored the resume")
		end()
		result()
	})
}

// TestCancelAfterOutage cancels jobs right after an outage. No cancel may return job_not_found, and
// no job may be both canceled and sent.
func TestCancelAfterOutage(t *testing.T) {
	t.Parallel()
	h := setupStores(t)
	end, result := h.run()
	h.working()
	require.NoError(t, h.redis.Server.Kill())
	const n = 200
	h.push("orders", 1500*time.Millisecond, names("job", n)...)
	require.NoError(t, h.redis.Server.Restart(t.Context()))

	var canceled sync.Map
	var unexpected atomic.Int64
	var wait sync.WaitGroup
	for _, id := range names("job", n) {
		wait.Go(func() {
			for {
				_, err := h.jobs.Cancel(context.Background(), "orders", id)
				switch {
				case err == nil:
					canceled.Store(id, true)
				case errors.Is(err, delayqueue.ErrUnavailable): // the caller retries
					<-time.After(20 * time.Millisecond)
					continue
				case !errors.Is(err, delayqueue.ErrConflict):
					t.Errorf("%s: %v", id, err)
					unexpected.Add(1)
				}
				return
			}
		})
	}
	wait.Wait()
	require.Zero(t, unexpected.Load())

	require.Eventually(t, func() bool {
		missing := 0
		sent := h.counts()
		for _, id := range names("job", n) {
			if _, ok := canceled.Load(id); !ok && sent[id] == 0 {
				missing++
			}
		}
		return missing == 0
	}, patience, 10*time.Millisecond, "every job that was not canceled is sent")
	end()
	result()
	for id, times := range h.counts() {
		_, wasCanceled := canceled.Load(id)
		require.False(t, wasCanceled, "%s was canceled and sent", id)
		require.Equal(t, 1, times, id)
	}
}

func TestPauseAfterRedisLostItsData(t *testing.T) {
	t.Parallel()
	h := setupStores(t)
	end, result := h.run()
	h.working()
	h.enqueue("orders", durable("durable", 300*time.Millisecond))
	for n := range 20 {
		require.NoError(t, h.jobs.Pause(t.Context(), "orders", time.Time{}))
		h.flush()
		h.push("orders", 0, fmt.Sprintf("job-%d", n))
	}
	h.push("emails", 0, "sentinel")
	require.Eventually(t, h.sentTo("emails", 1), patience, time.Millisecond)
	<-time.After(500 * time.Millisecond) // several polls pass, and the durable job becomes due
	require.Empty(t, h.counts())

	require.NoError(t, h.jobs.Resume(t.Context(), "orders"))
	// If a flush hit right after the durable job was moved, the outbox moves it again a minute
	// later.
	require.Eventually(t, h.sentTo("orders", 2), time.Minute+patience, time.Millisecond)
	require.Equal(t, map[string]int{"durable": 1, "job-19": 1}, h.counts())
	end()
	result()
}

// TestPauseThatReachedDynamoDBOnly pauses a queue while Redis hangs: the call fails, but the pause
// takes effect later.
func TestPauseThatReachedDynamoDBOnly(t *testing.T) {
	t.Parallel()
	h := setupStores(t)
	end, result := h.run()
	h.working()
	require.NoError(t, h.redis.Server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, h.jobs.Pause(ctx, "orders", time.Time{}))
	require.NoError(t, h.redis.Server.Resume())
	require.Eventually(t, func() bool {
		stats, err := h.queues.Stats(t.Context(), "orders")
		return err == nil && stats.Paused
	}, patience, 10*time.Millisecond)
	end()
	result()
}
