package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
)

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("sends a job when it is due and never before", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 2)
		end, result := h.run()
		h.working()
		began := time.Now()
		for n := range 20 {
			h.push("orders", time.Duration(50+25*n)*time.Millisecond, fmt.Sprintf("job-%d", n))
		}
		require.Eventually(t, h.sentTo("orders", 20), patience, time.Millisecond)
		require.Less(t, time.Since(began), 5*time.Second)
		for _, j := range h.sender.of("orders") {
			require.False(t, j.at.Before(j.RunAt), j.ID)
		}
		end()
		require.Equal(t, int64(20), result().Sent)
	})

	// Without a wake-up, the job would wait for the next poll, up to ten seconds.
	t.Run("a job that is due before all others wakes the dispatcher", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		h.cfg.Poll = 10 * time.Second
		h.push("orders", time.Hour, "later")
		end, result := h.run()
		h.working()
		<-time.After(300 * time.Millisecond) // until the dispatcher has claimed and waits
		pushed := time.Now()
		h.push("orders", 0, "now")
		require.Eventually(t, h.sentTo("orders", 1), 5*time.Second, time.Millisecond)
		require.Less(t, h.sender.of("orders")[0].at.Sub(pushed), 2*time.Second)
		end()
		result()
	})

	// BullMQ and Redisson stopped sending jobs when a wake-up was lost.
	t.Run("finds a job by polling when its wake-up is lost", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		h.cfg.Poll = 200 * time.Millisecond
		end, result := h.run()
		h.working()
		h.push("orders", 1600*time.Millisecond, "quiet") // due too late to cause a wake-up
		require.Eventually(t, h.sentTo("orders", 1), patience, time.Millisecond)
		j := h.sender.of("orders")[0]
		require.Less(t, j.at.Sub(j.RunAt), time.Second)
		end()
		result()
	})

	// EventBridge Scheduler may invoke the function late, twice or not at all, and invocations
	// overlap.
	t.Run("overlapping runs hand over without a gap and send each job once", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 2)
		h.cfg.Poll = 100 * time.Millisecond
		stop := make(chan struct{})
		var wait sync.WaitGroup
		pushed := 0
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					h.push("orders", 20*time.Millisecond, fmt.Sprintf("job-%d", pushed))
					pushed++
				}
			}
		})
		var results []func() dispatch.Summary
		var ends []context.CancelFunc
		for range 6 { // rounds of two concurrent runs
			for range 2 {
				end, result := h.run()
				ends, results = append(ends, end), append(results, result)
			}
			<-time.After(250 * time.Millisecond)
		}
		close(stop)
		wait.Wait()
		require.Eventually(t, h.sentTo("orders", pushed), patience, time.Millisecond)
		superseded := 0
		for i, result := range results {
			if i >= len(results)-2 {
				ends[i]()
			}
			if result().Reason == "superseded" {
				superseded++
			}
		}
		require.GreaterOrEqual(t, superseded, len(results)-2, "older runs end when a newer run works")
		seen := make(map[string]int)
		for _, j := range h.sender.of("orders") {
			seen[j.ID]++
			require.Less(t, j.at.Sub(j.RunAt), 3*time.Second, "no gap")
		}
		require.Len(t, seen, pushed)
		for id, n := range seen {
			require.Equal(t, 1, n, id)
		}
	})

	t.Run("sends the jobs that became due while no dispatcher ran", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 2)
		end, result := h.run()
		h.working()
		end()
		require.Equal(t, "deadline", result().Reason)
		h.push("orders", 0, names("job", 50)...)
		end, result = h.run()
		require.Eventually(t, h.sentTo("orders", 50), patience, time.Millisecond)
		end()
		require.Equal(t, int64(50), result().Sent)
	})

	// In sidekiq #3012, a million jobs that were due in the same second stalled all other jobs.
	t.Run("the backlog of one queue does not starve another", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		h.cfg.ClaimSize = 20
		h.sender.pause = 50 * time.Millisecond
		for n := range 10 {
			h.push("orders", 0, names(fmt.Sprintf("backlog-%d", n), 200)...)
		}
		end, result := h.run()
		require.Eventually(t, h.sentTo("orders", 20), patience, time.Millisecond)
		pushed := time.Now()
		h.push("emails", 0, "urgent")
		require.Eventually(t, h.sentTo("emails", 1), patience, time.Millisecond)
		require.Less(t, h.sender.of("emails")[0].at.Sub(pushed), 2*time.Second)
		require.Less(t, len(h.sender.of("orders")), 2000, "the backlog was still there")
		end()
		result()
	})

	// In oban #1416, one bad job blocked every queue.
	t.Run("a job that SQS can never accept becomes dead and does not block other jobs", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		h.sender.answer = func(j delayqueue.Claimed) sqssender.Result {
			if j.ID == "poison" {
				return sqssender.Result{Outcome: sqssender.Poison, Reason: "too large"}
			}
			return sqssender.Result{Outcome: sqssender.Accepted}
		}
		h.push("orders", 0, append([]string{"poison"}, names("good", 9)...)...)
		end, result := h.run()
		require.Eventually(t, h.sentTo("orders", 9), patience, time.Millisecond)
		require.Eventually(t, func() bool {
			info, err := h.queues.Get(t.Context(), "orders", "poison")
			return err == nil && info.State == delayqueue.Dead && info.LastError == "too large"
		}, patience, time.Millisecond)
		end()
		result()
	})

	t.Run("a refused job is sent again with the same attempt number", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		var mu sync.Mutex
		tries := make(map[string]int)
		h.sender.answer = func(j delayqueue.Claimed) sqssender.Result {
			mu.Lock()
			defer mu.Unlock()
			if tries[j.ID]++; tries[j.ID] < 3 {
				return sqssender.Result{Outcome: sqssender.Retry, Reason: "throttled", Throttled: true}
			}
			return sqssender.Result{Outcome: sqssender.Accepted}
		}
		h.push("orders", 0, names("job", 5)...)
		end, result := h.run()
		require.Eventually(t, h.sentTo("orders", 5), patience, time.Millisecond)
		for _, j := range h.sender.of("orders") {
			require.Equal(t, 1, j.Attempt)
		}
		end()
		require.GreaterOrEqual(t, result().Refused, int64(10))
	})

	// A SIGTERM or an approaching deadline ends claiming.
	t.Run("finishes the jobs in flight when claiming ends", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 1)
		h.sender.pause = 300 * time.Millisecond
		h.push("orders", 0, names("job", 10)...)
		end, result := h.run()
		require.Eventually(t, func() bool {
			s, err := h.queues.Stats(t.Context(), "orders")
			return err == nil && s.Dispatching == 10
		}, patience, time.Millisecond)
		end()
		require.Equal(t, int64(10), result().Sent)
		s, err := h.queues.Stats(t.Context(), "orders")
		require.NoError(t, err)
		require.Zero(t, s.Dispatching, "each outcome was recorded")
	})

	t.Run("sends the jobs of a paused queue after the pause", func(t *testing.T) {
		t.Parallel()
		h := setup(t, 2)
		h.cfg.Poll = 50 * time.Millisecond
		until := time.Now().Add(700 * time.Millisecond)
		require.NoError(t, h.queues.Pause(t.Context(), "orders", until))
		h.push("orders", 0, names("job", 5)...)
		h.push("emails", 0, "other")
		end, result := h.run()
		require.Eventually(t, h.sentTo("emails", 1), patience, time.Millisecond)
		require.Eventually(t, h.sentTo("orders", 5), patience, time.Millisecond)
		for _, j := range h.sender.of("orders") {
			require.False(t, j.at.Before(until.Truncate(time.Millisecond)))
		}
		end()
		result()
	})
}
