package delayqueue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
)

// What other queues shipped, and this one does not do.

// sidekiq lost two million jobs between the pop and the push (#843); gkit likewise (#157).
func TestAJobWhoseDispatcherDiedIsTakenBackWhenItsLeaseEnds(t *testing.T) {
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
			require.Zero(t, m.Reclaimed, "not before")
			q.set(t, start+30_000)
			m, err = q.Maintain(t.Context(), "orders", 0, 10)
			require.NoError(t, err)
			require.EqualValues(t, 1, m.Reclaimed)
			again := claimAll(t, q.Queues, "orders")
			require.Len(t, again, 1)
			require.Equal(t, first[0].Attempt, again[0].Attempt, "the same attempt under the same number")
			late, err := q.Accept(t.Context(), "orders", 0, first)
			require.NoError(t, err)
			require.Equal(t, first, late, "the claim of the dispatcher that died is lost")
			lost, err := q.Accept(t.Context(), "orders", 0, again)
			require.NoError(t, err)
			require.Empty(t, lost)
		})
	}
}

// hyperf #5259 and laravel #27862: the payload was the member, and an equal one overwrote another
// job.
func TestEqualPayloadsAreDifferentJobs(t *testing.T) {
	t.Parallel()
	q := newQueues(t, redistest.Single(t), Config{})
	for _, id := range []string{"a", "b"} {
		put(t, q, "orders", Job{ID: id, Payload: []byte(`{"same":true}`), MaxAttempts: 1})
	}
	claimSome(t, q, "orders", 2)
}

// sidekiq #3332, laravel #43310: a hundred thousand jobs in one script held Redis up for minutes.
func TestABacklogIsClaimedListedMaintainedAndRedrivenInBoundedSteps(t *testing.T) {
	t.Parallel()
	q := newQueues(t, redistest.Single(t), Config{Shards: 1, DedupWindow: time.Millisecond})
	const backlog = 3000
	for n := 0; n < backlog; n += MaxBatch {
		batch := make([]Job, MaxBatch)
		for i := range batch {
			batch[i] = simple(fmt.Sprintf("job-%d", n+i), 0)
		}
		putAll(t, q, "orders", batch)
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
}

// bullmq #4608: an unbounded list took Redis down. Every page is bounded, and pages go over every
// job once.
func TestListingGoesOverEveryJobOncePageByPage(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		q, queue := newQueues(t, r, Config{}), redistest.Name("list")
		for n := range 95 {
			put(t, q, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
		}
		seen := make(map[string]bool)
		for cursor, pages := "", 0; ; pages++ {
			page, err := q.List(t.Context(), queue, ListOptions{State: Scheduled, Limit: 20, Cursor: cursor})
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Jobs), 20)
			require.Less(t, pages, 20)
			for _, j := range page.Jobs {
				require.False(t, seen[j.ID], j.ID)
				seen[j.ID] = true
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		require.Len(t, seen, 95)
		_, err := q.List(t.Context(), queue, ListOptions{State: Scheduled, Limit: 20, Cursor: "no cursor of ours"})
		require.ErrorIs(t, err, ErrInvalid)
	})
}

// asynq #1071 and sidekiq #2800: the caller's clock made jobs up to a second early.
func TestNoJobIsEarlyByTheServersClock(t *testing.T) {
	t.Parallel()
	q := newClocked(t, redistest.Single(t), Config{Shards: 1})
	// a microsecond into a millisecond: rounded up
	require.NoError(t, q.client.Set(t.Context(), "test:micros", "1", 0).Err())
	e := put(t, q.Queues, "orders", simple("a", 1500*time.Millisecond))
	require.Equal(t, start+1501, e.RunAt.UnixMilli())
	q.set(t, start+1500)
	require.Empty(t, claimAll(t, q.Queues, "orders"))
	q.set(t, start+1501)
	require.Len(t, claimAll(t, q.Queues, "orders"), 1)
}

// redis #1071, bull #244: big numbers lost digits, or overflowed and ran at once.
func TestTenYearsAreKeptToTheMillisecond(t *testing.T) {
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
}

// sidekiq #4069 and hindsight #2675: a job that kills its dispatcher ran for ever, because attempts
// were counted only when they failed.
func TestAJobThatKillsEveryDispatcherIsDeadAfterSoManyLapses(t *testing.T) {
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
}

// An outage of SQS gives jobs back thousands of times; that is no poison.
func TestAJobThatSQSRefusesForALongTimeIsNotDead(t *testing.T) {
	t.Parallel()
	q := newClocked(t, redistest.Single(t), Config{Shards: 1, MaxLapses: 3})
	put(t, q.Queues, "orders", simple("a", 0))
	for range 50 {
		claimed := claimAll(t, q.Queues, "orders")
		require.Len(t, claimed, 1)
		require.Equal(t, 1, claimed[0].Attempt, "what SQS did not take is no attempt")
		_, err := q.Requeue(t.Context(), "orders", 0,
			[]Refused{{Job: claimed[0], Error: "throttled", Delay: time.Second}})
		require.NoError(t, err)
		q.set(t, q.nowMS+1000)
	}
}

// sidekiq #2883, #5899: full memory lost jobs. A job is accepted only when Redis has it, and a
// refusal changes nothing.
func TestAFullMemoryTakesNothingInAndLosesNothing(t *testing.T) {
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
}

// asynq #568, rq #1669, bullmq #787: after a cancel that raced with the claim nobody knew which it
// was.
func TestAChangeThatComesTooLateSaysWhereTheJobIs(t *testing.T) {
	t.Parallel()
	q := newQueues(t, redistest.Single(t), Config{})
	put(t, q, "orders", simple("a", 0))
	claimSome(t, q, "orders", 1)
	_, err := q.Cancel(t.Context(), "orders", "a")
	require.ErrorIs(t, err, ErrConflict)
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, Dispatching, f.Extra["state"])
	_, err = q.Cancel(t.Context(), "orders", "unknown")
	require.ErrorIs(t, err, ErrNotFound)
}

// bullmq #2734: 2.2 KB for each delayed job.
func TestAPendingJobOf200BytesTakesLessThan600(t *testing.T) {
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
	put(t, q, "orders", simple("warm", time.Hour))
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
}

// laravel-google-cloud-tasks #104: a tombstone for dedup swallowed a retry.
func TestARetryIsNotSwallowedByItsOwnDedup(t *testing.T) {
	t.Parallel()
	q := newClocked(t, redistest.Single(t), Config{Shards: 1, DedupWindow: time.Hour})
	j := simple("a", 0)
	j.MaxAttempts, j.AckTimeout = 3, time.Second
	put(t, q.Queues, "orders", j)
	for attempt := 1; attempt <= 3; attempt++ {
		claimed := claimAll(t, q.Queues, "orders")
		require.Len(t, claimed, 1)
		require.Equal(t, attempt, claimed[0].Attempt)
		_, err := q.Accept(t.Context(), "orders", 0, claimed)
		require.NoError(t, err)
		_, err = q.Nack(t.Context(), "orders", "a", attempt, NackOptions{Reason: "no", Delay: new(time.Duration)})
		require.NoError(t, err)
	}
	require.Equal(t, Dead, state(t, q.Queues, "orders", "a"))
}

func TestAChangedShardCountStrandsNoJobAndDoublesNone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		queue := redistest.Name("shards")
		before := newQueues(t, r, Config{Shards: 3})
		require.NoError(t, before.Register(t.Context()))
		for n := range 30 {
			put(t, before, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
		}
		for _, shards := range []int{8, 2} {
			after := newQueues(t, r, Config{Shards: shards})
			require.NoError(t, after.Register(t.Context()))
			for n := range 30 {
				e := put(t, after, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
				require.True(t, e.Duplicate, "job-%d is known with %d shards", n, shards)
				require.False(t, e.Differs)
			}
			id := fmt.Sprintf("job-%d", shards)
			_, err := after.Reschedule(context.Background(), queue, id, Change{Delay: new(time.Duration)})
			require.NoError(t, err)
			var claimed []Claimed
			require.Eventually(t, func() bool {
				claimed = append(claimed, claimAll(t, after, queue)...)
				return len(claimed) == 1
			}, 5*time.Second, time.Millisecond)
			require.Equal(t, id, claimed[0].ID)
		}
	})
}

func TestLargePayloadsAreCompressedAndComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	q := newQueues(t, r, Config{})
	payload := `{"text":"` + strings.Repeat("a long payload, and again ", 2000) + `"}`
	put(t, q, "orders", Job{ID: "big", Payload: []byte(payload), MaxAttempts: 1})
	record, err := r.Client.HGet(t.Context(), placeOf("orders", q.shardOf("big")).jobs, "big").Result()
	require.NoError(t, err)
	require.Less(t, len(record), len(payload)/10)
	info, err := q.Get(t.Context(), "orders", "big")
	require.NoError(t, err)
	require.JSONEq(t, payload, string(info.Payload))
	require.True(t, put(t, q, "orders", Job{ID: "big", Payload: []byte(payload), MaxAttempts: 1}).Duplicate)
}

func TestDispatchersTakeOverAlsoAfterRedisLostEverything(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
		q := newQueues(t, r, Config{})
		old, err := q.TakeOver(t.Context())
		require.NoError(t, err)
		require.NoError(t, q.Beat(t.Context(), old))
		next, err := q.TakeOver(t.Context())
		require.NoError(t, err)
		require.Greater(t, next, old)
		require.NoError(t, r.Client.Del(t.Context(), generationKey, newestKey, HeartbeatKey).Err())
		require.NoError(t, q.Beat(t.Context(), old)) // one that is still at work beats once more
		mine, err := q.TakeOver(t.Context())
		require.NoError(t, err)
		newest, err := q.Newest(t.Context())
		require.NoError(t, err)
		require.Less(t, newest, mine, "the new one is not taken for an old one")
	})
}

func TestAPauseHoldsForShardsThatAreAddedLater(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	before := newQueues(t, r, Config{Shards: 1})
	require.NoError(t, before.Pause(t.Context(), "orders", time.Time{}))
	after := newQueues(t, r, Config{Shards: 8})
	require.NoError(t, after.Register(t.Context()))
	for n := range 40 {
		put(t, after, "orders", simple(fmt.Sprintf("job-%d", n), 0))
	}
	require.Eventually(t, func() bool {
		s, err := after.Stats(t.Context(), "orders")
		return err == nil && s.Due == 40
	}, 5*time.Second, time.Millisecond)
	require.Empty(t, claimAll(t, after, "orders"))
	require.NoError(t, after.Resume(t.Context(), "orders"))
	require.Len(t, claimAll(t, after, "orders"), 40)
}

func TestWhatWasSentFromTheOutboxIsSettledInTheShardWhereItIsKnown(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	before := newQueues(t, r, Config{Shards: 3})
	for n := range 20 {
		put(t, before, "orders", simple(fmt.Sprintf("job-%d", n), 0))
	}
	after := newQueues(t, r, Config{Shards: 8})
	require.NoError(t, after.Register(t.Context()))
	for n := range 20 {
		j := simple(fmt.Sprintf("job-%d", n), 0)
		j.RunAt = time.Now()
		require.NoError(t, after.RecordSent(t.Context(), "orders", j, time.Now()))
	}
	require.Empty(t, claimAll(t, after, "orders"))
	for n := range 20 {
		require.Equal(t, Dispatched, state(t, after, "orders", fmt.Sprintf("job-%d", n)))
	}
}

// One call must not look through all finished jobs because few are in the state that is asked for.
func TestAPageOfARareStateLooksAtABoundedPieceOfTheFinishedJobs(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	q := newClocked(t, r, Config{Shards: 1})
	const jobs = 4000
	for n := 0; n < jobs; n += MaxBatch {
		batch := make([]Job, MaxBatch)
		for i := range batch {
			batch[i] = simple(fmt.Sprintf("job-%d", n+i), 0)
		}
		putAll(t, q.Queues, "orders", batch)
	}
	_, err := q.Cancel(t.Context(), "orders", "job-7")
	require.NoError(t, err)
	for claimed := claimAll(t, q.Queues, "orders"); len(claimed) > 0; claimed = claimAll(t, q.Queues, "orders") {
		_, err := q.Accept(t.Context(), "orders", 0, claimed)
		require.NoError(t, err)
	}
	require.NoError(t, r.Client.ConfigResetStat(t.Context()).Err())
	page, err := q.List(t.Context(), "orders", ListOptions{State: Expired, Limit: 2})
	require.NoError(t, err)
	require.NotEmpty(t, page.NextCursor, "there is more to look through")
	stats, err := r.Client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var calls int
	_, rest, _ := strings.Cut(stats, "cmdstat_hmget:calls=")
	_, err = fmt.Sscanf(rest, "%d", &calls)
	require.NoError(t, err)
	require.LessOrEqual(t, calls, 5)
	var found []Info
	for cursor := ""; ; {
		page, err := q.List(t.Context(), "orders", ListOptions{State: Canceled, Limit: 2, Cursor: cursor})
		require.NoError(t, err)
		if found = append(found, page.Jobs...); page.NextCursor == "" {
			break
		}
		cursor = page.NextCursor
	}
	require.Len(t, found, 1, "and page by page it is found")
}
