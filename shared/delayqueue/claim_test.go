package delayqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	// asynq #1071 and sidekiq #2800: the caller's clock decided, and jobs ran up to a second early.
	t.Run("no job is early by the clock of Redis", func(t *testing.T) {
		t.Parallel()
		q := newClocked(t, redistest.Single(t), Config{Shards: 1})
		// Redis' clock is one microsecond past a whole millisecond, so the due time is rounded up.
		require.NoError(t, q.client.Set(t.Context(), "test:micros", "1", 0).Err())
		e := put(t, q.Queues, "orders", simple("a", 1500*time.Millisecond))
		require.Equal(t, start+1501, e.RunAt.UnixMilli())
		q.set(t, start+1500)
		require.Empty(t, claimAll(t, q.Queues, "orders"))
		q.set(t, start+1501)
		require.Len(t, claimAll(t, q.Queues, "orders"), 1)
	})

	// sidekiq #3332, laravel #43310: one script that processed a hundred thousand jobs blocked
	// Redis for minutes.
	t.Run("a backlog is processed in bounded steps", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{Shards: 1, DedupWindow: time.Millisecond})
		const backlog = 3000
		for n := 0; n < backlog; n += MaxBatch {
			putAll(t, q, "orders", batchOf(n))
		}
		c, err := q.Claim(t.Context(), "orders", 0, 500, time.Minute)
		require.NoError(t, err)
		require.Len(t, c.Jobs, 500)
		page, err := q.List(t.Context(), "orders", ListOptions{Limit: MaxPage})
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Jobs), MaxPage)
		require.NotEmpty(t, page.NextCursor)
		refused := make([]Refused, len(c.Jobs))
		for i, j := range c.Jobs {
			refused[i] = Refused{Job: j, Poison: true}
		}
		_, err = q.Requeue(t.Context(), "orders", 0, refused)
		require.NoError(t, err)
		moved, err := q.Redrive(t.Context(), "orders", RedriveOptions{Limit: 300})
		require.NoError(t, err)
		require.EqualValues(t, 300, moved)
	})
}

func TestRequeue(t *testing.T) {
	t.Parallel()
	// During an SQS outage a job may be requeued thousands of times. It must not become dead.
	t.Run("a job that SQS rejects for a long time does not become dead", func(t *testing.T) {
		t.Parallel()
		q := newClocked(t, redistest.Single(t), Config{Shards: 1, MaxLapses: 3})
		put(t, q.Queues, "orders", simple("a", 0))
		for range 50 {
			claimed := claimAll(t, q.Queues, "orders")
			require.Len(t, claimed, 1)
			require.Equal(t, 1, claimed[0].Attempt, "an attempt that SQS rejected does not count")
			_, err := q.Requeue(t.Context(), "orders", 0,
				[]Refused{{Job: claimed[0], Error: "throttled", Delay: time.Second}})
			require.NoError(t, err)
			q.set(t, q.nowMS+1000)
		}
	})
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	// sidekiq #843 lost two million jobs between the pop and the push. gkit #157 is the same bug.
	t.Run("a job is rescheduled when its lease lapses", func(t *testing.T) {
		t.Parallel()
		for name, r := range map[string]*redistest.Redis{"redis": redistest.Single(t), "miniredis": redistest.Mini(t)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				q := newClocked(t, r, Config{Shards: 1})
				put(t, q.Queues, "orders", simple("a", 0))
				first := claimAll(t, q.Queues, "orders")
				require.Len(t, first, 1)
				q.set(t, start+29_999)
				m, err := q.Maintain(t.Context(), "orders", 0, 10)
				require.NoError(t, err)
				require.Zero(t, m.Reclaimed, "the lease has not lapsed yet")
				q.set(t, start+30_000)
				m, err = q.Maintain(t.Context(), "orders", 0, 10)
				require.NoError(t, err)
				require.EqualValues(t, 1, m.Reclaimed)
				again := claimAll(t, q.Queues, "orders")
				require.Len(t, again, 1)
				require.Equal(t, first[0].Attempt, again[0].Attempt, "the attempt keeps its number")
				late, err := q.Accept(t.Context(), "orders", 0, first)
				require.NoError(t, err)
				require.Equal(t, first, late, "the claim of the dispatcher that died is lost")
				lost, err := q.Accept(t.Context(), "orders", 0, again)
				require.NoError(t, err)
				require.Empty(t, lost)
			})
		}
	})

	// sidekiq #4069 and hindsight #2675: a job that crashed its dispatcher was retried forever,
	// because only failed attempts were counted.
	t.Run("a job that crashes every dispatcher is dead after MaxLapses", func(t *testing.T) {
		t.Parallel()
		q := newClocked(t, redistest.Single(t), Config{Shards: 1, MaxLapses: 3})
		put(t, q.Queues, "orders", simple("poison", 0))
		for n := range 3 {
			require.Len(t, claimAll(t, q.Queues, "orders"), 1, "lapse %d", n)
			q.set(t, q.nowMS+30_000)
			_, err := q.Maintain(t.Context(), "orders", 0, 10)
			require.NoError(t, err)
		}
		require.Empty(t, claimAll(t, q.Queues, "orders"))
		info, err := q.Get(t.Context(), "orders", "poison")
		require.NoError(t, err)
		require.Equal(t, Dead, info.State)
		require.Contains(t, info.LastError, "each lease ended before an outcome was recorded")
	})
}
