package delayqueue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

// rounds is the number of repetitions of each race.
const rounds = 60

// race calls the function prepare, and then runs the functions a and b concurrently on the same
// job. Both functions report whether they succeeded, and the function judge checks their results.
// Afterwards the job must be in exactly one place.
func race(t *testing.T, cfg Config, prepare func(q *Queues, queue, id string), a,
	b func(q *Queues, queue, id string) bool, judge func(q *Queues, queue, id string, aWon, bWon bool)) {
	t.Helper()
	r := redistest.Single(t)
	q := newQueues(t, r, cfg)
	wins := [2]int{}
	for i := range rounds {
		queue, id := redistest.Name("race"), fmt.Sprintf("job-%d", i)
		prepare(q, queue, id)
		var aWon, bWon bool
		var wait sync.WaitGroup
		begin := make(chan struct{})
		wait.Go(func() { <-begin; aWon = a(q, queue, id) })
		wait.Go(func() { <-begin; bWon = b(q, queue, id) })
		close(begin)
		wait.Wait()
		judge(q, queue, id, aWon, bWon)
		places, _ := where(t, r.Client, queue, q.AllShards(), id)
		require.Len(t, places, 1, "the job is in exactly one place")
		if aWon {
			wins[0]++
		}
		if bWon {
			wins[1]++
		}
	}
	t.Logf("of %d races the first call won %d and the second %d", rounds, wins[0], wins[1])
}

// one returns a judge that requires that exactly one of the two calls succeeded.
func one(t *testing.T) func(q *Queues, queue, id string, aWon, bWon bool) {
	t.Helper()
	return func(_ *Queues, _, _ string, aWon, bWon bool) {
		require.NotEqual(t, aWon, bWon, "exactly one wins")
	}
}

func state(t *testing.T, q *Queues, queue, id string) State {
	t.Helper()
	info, err := q.Get(context.Background(), queue, id)
	require.NoError(t, err)
	return info.State
}

// awaiting returns a prepare function. It creates a job whose first attempt awaits its
// acknowledgement.
func awaiting(t *testing.T, ack time.Duration) func(q *Queues, queue, id string) {
	t.Helper()
	return func(q *Queues, queue, id string) {
		j := simple(id, 0)
		j.MaxAttempts, j.AckTimeout = 2, ack
		result := q.EnqueueAccepted(context.Background(), queue, []Job{j}) // Normalize rejects a short ack timeout
		require.NoError(t, result[0].Err)
		claimed := claimSome(t, q, queue, 1)
		lost, err := q.Accept(context.Background(), queue, claimed[0].Shard, claimed)
		require.NoError(t, err)
		require.Empty(t, lost)
	}
}

func TestRace(t *testing.T) {
	t.Parallel()
	t.Run("a cancel and a claim: one wins", func(t *testing.T) {
		t.Parallel()
		race(t, Config{}, func(q *Queues, queue, id string) { put(t, q, queue, simple(id, 0)) },
			func(q *Queues, queue, id string) bool {
				_, err := q.Cancel(context.Background(), queue, id)
				return err == nil
			},
			func(q *Queues, queue, _ string) bool { return len(claimAll(t, q, queue)) == 1 },
			one(t))
	})

	t.Run("a reschedule and a claim: one wins", func(t *testing.T) {
		t.Parallel()
		later := time.Hour
		race(t, Config{}, func(q *Queues, queue, id string) { put(t, q, queue, simple(id, 0)) },
			func(q *Queues, queue, id string) bool {
				_, err := q.Reschedule(context.Background(), queue, id, Change{Delay: &later})
				return err == nil
			},
			func(q *Queues, queue, _ string) bool { return len(claimAll(t, q, queue)) == 1 },
			one(t))
	})

	t.Run("an acknowledgement and its timeout: one wins", func(t *testing.T) {
		t.Parallel()
		race(t, Config{Shards: 1}, awaiting(t, time.Millisecond),
			func(q *Queues, queue, id string) bool {
				_, err := q.Ack(context.Background(), queue, id, 1)
				return err == nil
			},
			func(q *Queues, queue, _ string) bool {
				m, err := q.Maintain(context.Background(), queue, 0, 10)
				require.NoError(t, err)
				return m.Missed == 1
			},
			func(q *Queues, queue, id string, acked, missed bool) {
				require.NotEqual(t, acked, missed, "exactly one call succeeds")
				want := Succeeded
				if missed {
					want = Scheduled
				}
				require.Equal(t, want, state(t, q, queue, id))
			})
	})

	t.Run("an enqueue and its retry: one job", func(t *testing.T) {
		t.Parallel()
		fresh := func(q *Queues, queue, id string) bool { return !put(t, q, queue, simple(id, time.Hour)).Duplicate }
		race(t, Config{}, func(*Queues, string, string) {}, fresh, fresh, one(t))
	})

	t.Run("a redrive and the removal of a dead job: one wins", func(t *testing.T) {
		t.Parallel()
		race(t, Config{Shards: 1, DeadRetention: time.Millisecond}, func(q *Queues, queue, id string) {
			put(t, q, queue, simple(id, 0))
			claimed := claimSome(t, q, queue, 1)
			_, err := q.Requeue(context.Background(), queue, 0,
				[]Refused{{Job: claimed[0], Poison: true, Error: "too large"}})
			require.NoError(t, err)
		}, func(q *Queues, queue, id string) bool {
			n, err := q.Redrive(context.Background(), queue, RedriveOptions{IDs: []string{id}})
			require.NoError(t, err)
			return n == 1
		}, func(q *Queues, queue, _ string) bool {
			m, err := q.Maintain(context.Background(), queue, 0, 10)
			require.NoError(t, err)
			return m.Pruned == 1
		}, func(q *Queues, queue, id string, redriven, pruned bool) {
			require.False(t, redriven && pruned)
			if pruned {
				_, err := q.Get(context.Background(), queue, id)
				require.ErrorIs(t, err, ErrNotFound)
				put(t, q, queue, simple(id, 0)) // the ID is free again; race requires that its job exists
				return
			}
			require.True(t, redriven, "one of the two calls wins")
			require.Equal(t, Scheduled, state(t, q, queue, id))
		})
	})

	// EventBridge may start two dispatchers at the same time.
	t.Run("concurrent claims: each job goes to one dispatcher", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			q, queue := newQueues(t, r, Config{Shards: 1}), redistest.Name("race")
			const jobs = 400
			for n := range jobs {
				put(t, q, queue, simple(fmt.Sprintf("job-%d", n), 0))
			}
			var mu sync.Mutex
			seen := make(map[string]int)
			var wait sync.WaitGroup
			for range 4 {
				wait.Go(func() {
					for {
						c, err := q.Claim(context.Background(), queue, 0, 10, time.Minute)
						if err != nil || len(c.Jobs) == 0 {
							return
						}
						mu.Lock()
						for _, j := range c.Jobs {
							seen[j.ID]++
						}
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			require.Len(t, seen, jobs)
			for id, n := range seen {
				require.Equal(t, 1, n, id)
			}
		})
	})
}
