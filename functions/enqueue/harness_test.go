package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = apitest.Object

const (
	jobsPath     = "/v1/queues/orders/jobs"
	fifoJobsPath = "/v1/queues/ordered/jobs"
)

// fixture is the function with its own Redis and DynamoDB.
type fixture struct {
	*api
	apitest.API

	redis  *redistest.Redis
	conn   *redisconn.Conn // the function's connection
	queues *delayqueue.Queues
	outbox *outbox.Outbox
	aws    *awstest.AWS
}

// patience is a call timeout that is long enough on a loaded machine. Tests of an unresponsive
// Redis use redisTimeout instead.
const patience = 10 * time.Second

func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t), patience)
}

// wire builds the function as main does, with a log that the test can read.
func wire(t testing.TB, r *redistest.Redis, timeout time.Duration) *fixture {
	t.Helper()
	redisconn.SilenceDriver()
	f := &fixture{redis: r, aws: awstest.Start(t)}
	f.Log = &bytes.Buffer{}
	f.outbox = outbox.New(f.aws.DynamoDB, f.aws.CreateTable(t, outbox.TableInput(redistest.Name("outbox"))))
	conn, err := redisconn.Open(redisconn.Config{URLs: redisconn.SplitList(r.URL), Cluster: r.Cluster,
		CallTimeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	f.conn = conn
	f.queues, err = delayqueue.New(conn, delayqueue.Config{})
	require.NoError(t, err)

	log := slog.New(slog.NewTextHandler(f.Log, nil))
	f.api = &api{
		jobs: jobs.New(f.queues, f.outbox, log),
		urls: map[string]string{"orders": "https://sqs.test/1/orders", "ordered": "https://sqs.test/1/ordered.fifo"},
		log:  log, metrics: telemetry.Discard(),
	}
	f.Handler = f.routes()
	return f
}

// loseDynamoDB makes DynamoDB unavailable until the test calls restore.
func (f *fixture) loseDynamoDB() (restore func()) {
	options := f.aws.DynamoDB.Options()
	options.BaseEndpoint, options.Retryer = aws.String("http://127.0.0.1:1"), aws.NopRetryer{}
	before := f.jobs
	f.jobs = jobs.New(f.queues, outbox.New(dynamodb.New(options), "none"), f.log)
	return func() { f.jobs = before }
}

// restartRedis restarts the stopped Redis and waits until the function can use it.
func (f *fixture) restartRedis(t testing.TB) {
	t.Helper()
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.Send(t, http.MethodGet, jobsPath, nil).Status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)
}

// post enqueues a job and requires that it is new.
func (f *fixture) post(t testing.TB, target string, job object) apitest.Reply {
	t.Helper()
	a := f.Want(t, http.StatusAccepted, http.MethodPost, target, job)
	require.Equal(t, false, a.Body["duplicate"])
	return a
}

// claim claims due jobs of the queue "orders", as a dispatcher does, until it has n jobs.
func (f *fixture) claim(t testing.TB, n int) []delayqueue.Claimed {
	t.Helper()
	var out []delayqueue.Claimed
	require.Eventually(t, func() bool {
		for shard := range f.queues.AllShards() {
			claims, err := f.queues.Claim(t.Context(), "orders", shard, 100, time.Minute)
			require.NoError(t, err)
			out = append(out, claims.Jobs...)
		}
		return len(out) >= n
	}, 10*time.Second, 2*time.Millisecond)
	require.Len(t, out, n)
	return out
}

// deliver claims n jobs and records that SQS accepted them.
func (f *fixture) deliver(t testing.TB, n int) {
	t.Helper()
	for _, j := range f.claim(t, n) {
		lost, err := f.queues.Accept(t.Context(), "orders", j.Shard, []delayqueue.Claimed{j})
		require.NoError(t, err)
		require.Empty(t, lost)
	}
}

// item returns the outbox item of a job of the queue "orders", or nil if there is none.
func (f *fixture) item(t testing.TB, id string) *outbox.Item {
	t.Helper()
	item, err := f.outbox.Find(t.Context(), "orders", id)
	require.NoError(t, err)
	return item
}

func in(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000Z") }
