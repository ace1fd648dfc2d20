package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sender stands in for SQS: it keeps what it was sent, when, and answers as it is told.
type sender struct {
	answer func(delayqueue.Claimed) sqssender.Result // default: accepted
	pause  time.Duration                             // of each call

	mu   sync.Mutex
	sent []sentJob
}

type sentJob struct {
	delayqueue.Claimed

	queue string
	at    time.Time
}

func (s *sender) Send(_ context.Context, queue, _ string, jobs []delayqueue.Claimed) []sqssender.Result {
	<-time.After(s.pause)
	out := make([]sqssender.Result, len(jobs))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range jobs {
		if out[i] = (sqssender.Result{Outcome: sqssender.Accepted}); s.answer != nil {
			out[i] = s.answer(j)
		}
		if out[i].Outcome == sqssender.Accepted {
			s.sent = append(s.sent, sentJob{j, queue, time.Now()})
		}
	}
	return out
}

func (s *sender) of(queue string) []sentJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sentJob
	for _, j := range s.sent {
		if j.queue == queue {
			out = append(out, j)
		}
	}
	return out
}

const patience = 20 * time.Second

type harness struct {
	*testing.T

	queues *delayqueue.Queues
	sender *sender
	cfg    dispatch.Config
}

func setup(t *testing.T, shards int) *harness {
	t.Helper()
	r := redistest.Single(t)
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}, CallTimeout: 5 * time.Second, PoolSize: 64})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	q, err := delayqueue.New(conn, delayqueue.Config{Shards: shards})
	require.NoError(t, err)
	return &harness{t, q, &sender{}, dispatch.Config{Queues: map[string]string{"orders": "url/orders",
		"emails": "url/emails"}}}
}

// run starts an invocation; end stops its claiming, and result waits for what it says.
func (h *harness) run() (end context.CancelFunc, result func() dispatch.Summary) {
	h.Helper()
	log := slog.New(slog.DiscardHandler)
	d := dispatch.New(h.cfg, jobs.New(h.queues, nil, log), h.sender, log, telemetry.Discard())
	claiming, end := context.WithCancel(context.Background())
	done := make(chan dispatch.Summary, 1)
	go func() { done <- d.Run(context.Background(), claiming) }()
	h.Cleanup(end)
	return end, func() dispatch.Summary {
		select {
		case s := <-done:
			return s
		case <-time.After(patience):
			require.Fail(h, "the invocation does not end")
			return dispatch.Summary{}
		}
	}
}

func (h *harness) push(queue string, delay time.Duration, ids ...string) {
	h.Helper()
	jobs := make([]delayqueue.Job, len(ids))
	for i, id := range ids {
		jobs[i] = delayqueue.Job{ID: id, Payload: []byte("1"), Delay: delay, MaxAttempts: 1,
			Backoff: delayqueue.DefaultBackoff()}
	}
	for _, result := range h.queues.Enqueue(context.Background(), queue, jobs) {
		require.NoError(h, result.Err)
	}
}

func (h *harness) sentTo(queue string, n int) func() bool {
	return func() bool { return len(h.sender.of(queue)) >= n }
}

func (h *harness) working() {
	h.Helper()
	require.Eventually(h, func() bool {
		n, err := h.queues.Newest(context.Background())
		return err == nil && n > 0
	}, patience, time.Millisecond)
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return out
}

func TestAJobIsSentWhenItIsDueAndNeverBefore(t *testing.T) {
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
}

// Without the wake-up a new head would wait for the poll, which is ten seconds here.
func TestAJobThatIsDueSoonerThanAllOthersWakesTheDispatcher(t *testing.T) {
	t.Parallel()
	h := setup(t, 1)
	h.cfg.Poll = 10 * time.Second
	h.push("orders", time.Hour, "later")
	end, result := h.run()
	h.working()
	<-time.After(300 * time.Millisecond) // it has looked, and sleeps
	pushed := time.Now()
	h.push("orders", 0, "now")
	require.Eventually(t, h.sentTo("orders", 1), 5*time.Second, time.Millisecond)
	require.Less(t, h.sender.of("orders")[0].at.Sub(pushed), 2*time.Second)
	end()
	result()
}

// bullmq and redisson stopped when a wake-up was lost: the poll finds what nobody told of.
func TestALostWakeUpCostsAPollAndNoMore(t *testing.T) {
	t.Parallel()
	h := setup(t, 1)
	h.cfg.Poll = 200 * time.Millisecond
	end, result := h.run()
	h.working()
	h.push("orders", 1600*time.Millisecond, "quiet") // due so late that the enqueue wakes nobody
	require.Eventually(t, h.sentTo("orders", 1), patience, time.Millisecond)
	j := h.sender.of("orders")[0]
	require.Less(t, j.at.Sub(j.RunAt), time.Second)
	end()
	result()
}

// EventBridge fires late, twice, or not at all, and invocations overlap: whoever is newest works,
// the others end, and each job is sent once.
func TestOverlappingInvocationsHandOverWithoutAGapAndSendEachJobOnce(t *testing.T) {
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
	for range 6 { // two of them at the same time
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
	require.GreaterOrEqual(t, superseded, len(results)-2, "older ones end when a newer one works")
	seen := make(map[string]int)
	for _, j := range h.sender.of("orders") {
		seen[j.ID]++
		require.Less(t, j.at.Sub(j.RunAt), 3*time.Second, "no gap")
	}
	require.Len(t, seen, pushed)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

func TestAnInvocationAfterAGapFindsEverythingThatBecameDueMeanwhile(t *testing.T) {
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
}

// sidekiq #3012: a million jobs due in the same second stalled everything else.
func TestABacklogOfOneQueueDoesNotStarveAnother(t *testing.T) {
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
}

// oban #1416: one bad job blocked the staging of every queue.
func TestAPoisonJobIsDeadWithItsReasonAndInNobodysWay(t *testing.T) {
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
}

func TestWhatSQSDoesNotTakeComesBackLaterWithTheSameAttempt(t *testing.T) {
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
}

// SIGTERM and the approaching deadline end the claiming; what is in flight is finished and noted.
func TestTheEndOfClaimingFinishesWhatIsInFlight(t *testing.T) {
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
	require.Zero(t, s.Dispatching, "each of them was noted")
}

func TestAPauseHoldsJobsBackUntilItsEnd(t *testing.T) {
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
}
