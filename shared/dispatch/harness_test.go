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

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

func TestMain(m *testing.M) {
	redisconn.SilenceDriver()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(
		"github.com/sivchari/kumo/internal/service/dynamodb.(*MemoryStorage).ttlReaper")) // never ends
}

// sender is a fake SQS. It records the jobs that it accepted.
type sender struct {
	answer func(delayqueue.Claimed) sqssender.Result // defaults to accepted
	pause  time.Duration                             // duration of each call

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

	redis  *redistest.Redis
	queues *delayqueue.Queues
	jobs   *jobs.Service
	sender *sender
	cfg    dispatch.Config
}

// setup returns a harness without an outbox.
func setup(t *testing.T, shards int) *harness {
	t.Helper()
	h := &harness{T: t, redis: redistest.Single(t), sender: &sender{}}
	h.cfg.Queues = map[string]string{"orders": "url/orders", "emails": "url/emails"}
	conn, err := redisconn.Open(redisconn.Config{
		URLs: []string{h.redis.URL}, CallTimeout: 5 * time.Second, PoolSize: 64,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	h.queues, err = delayqueue.New(conn, delayqueue.Config{Shards: shards})
	require.NoError(t, err)
	h.jobs = jobs.New(h.queues, nil, slog.New(slog.DiscardHandler))
	return h
}

// setupStores returns a harness with an outbox.
func setupStores(t *testing.T) *harness {
	t.Helper()
	h := setup(t, 2)
	aws := awstest.Start(t)
	box := outbox.New(aws.DynamoDB, aws.CreateTable(t, outbox.TableInput(redistest.Name("outbox"))))
	h.jobs = jobs.New(h.queues, box, slog.New(slog.DiscardHandler))
	h.cfg.Poll, h.cfg.OutboxPoll = 50*time.Millisecond, 100*time.Millisecond
	return h
}

// run starts a run. The function end stops its claiming. The function result waits until the run
// ends and returns its summary.
func (h *harness) run() (end context.CancelFunc, result func() dispatch.Summary) {
	h.Helper()
	d := dispatch.New(h.cfg, h.jobs, h.sender, slog.New(slog.DiscardHandler), telemetry.Discard())
	claiming, end := context.WithCancel(context.Background())
	done := make(chan dispatch.Summary, 1)
	go func() { done <- d.Run(context.Background(), claiming) }()
	h.Cleanup(end)
	return end, func() dispatch.Summary {
		select {
		case s := <-done:
			return s
		case <-time.After(patience):
			require.Fail(h, "the run does not end")
			return dispatch.Summary{}
		}
	}
}

func (h *harness) push(queue string, delay time.Duration, ids ...string) {
	h.Helper()
	jobs := make([]delayqueue.Job, len(ids))
	for i, id := range ids {
		jobs[i] = delayqueue.Job{ID: id, Payload: []byte("1"), Delay: delay}
	}
	h.enqueue(queue, jobs...)
}

func (h *harness) enqueue(queue string, jobs ...delayqueue.Job) {
	h.Helper()
	for _, result := range h.jobs.Enqueue(context.Background(), queue, jobs) {
		require.NoError(h, result.Err)
	}
}

func (h *harness) sentTo(queue string, n int) func() bool {
	return func() bool { return len(h.sender.of(queue)) >= n }
}

// working waits until a run has opened its gate.
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
