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
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = apitest.Object

const (
	jobs  = "/v1/queues/orders/jobs"
	fifos = "/v1/queues/ordered/jobs"
)

// fixture is the function on a Redis and a DynamoDB of the test's own.
type fixture struct {
	*api
	apitest.API

	redis *redistest.Redis
	conn  *redisconn.Conn // the function's own
	aws   *awstest.AWS
}

// patience is a time for Redis that a loaded machine keeps to. Tests of a Redis that hangs have
// main's.
const patience = 10 * time.Second

func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t), patience)
}

// wire makes the function as main does, with a log that is kept.
func wire(t testing.TB, r *redistest.Redis, timeout time.Duration) *fixture {
	t.Helper()
	redisconn.SilenceDriver()
	f := &fixture{redis: r, aws: awstest.Start(t)}
	f.Log = &bytes.Buffer{}
	table := f.aws.CreateTable(t, outbox.TableInput(redistest.Name("outbox")))
	conn, err := redisconn.Open(redisconn.Config{URLs: redisconn.SplitList(r.URL), Cluster: r.Cluster,
		CallTimeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	f.conn = conn
	queues, err := delayqueue.New(conn, delayqueue.Config{})
	require.NoError(t, err)
	f.api = &api{
		queues: queues, outbox: outbox.New(f.aws.DynamoDB, table),
		urls: map[string]string{"orders": "https://sqs.test/1/orders", "ordered": "https://sqs.test/1/ordered.fifo"},
		log:  slog.New(slog.NewTextHandler(f.Log, nil)), metrics: telemetry.Discard(),
	}
	f.Handler = f.routes()
	return f
}

// loseDynamoDB puts an address at which nobody listens in the place of DynamoDB.
func (f *fixture) loseDynamoDB() {
	options := f.aws.DynamoDB.Options()
	options.BaseEndpoint, options.Retryer = aws.String("http://127.0.0.1:1"), aws.NopRetryer{}
	f.outbox = outbox.New(dynamodb.New(options), "none")
}

// post takes a job in, which must be new.
func (f *fixture) post(t testing.TB, target string, job object) apitest.Reply {
	t.Helper()
	a := f.Want(t, http.StatusAccepted, http.MethodPost, target, job)
	require.Equal(t, false, a.Body["duplicate"])
	return a
}

// claim claims what is due in orders until so many jobs came, as a dispatcher does.
func (f *fixture) claim(t testing.TB, n int) []delayqueue.Claimed {
	t.Helper()
	var out []delayqueue.Claimed
	require.Eventually(t, func() bool {
		for shard := range f.queues.AllShards() {
			found, err := f.queues.Claim(t.Context(), "orders", shard, 100, time.Minute)
			require.NoError(t, err)
			out = append(out, found.Jobs...)
		}
		return len(out) >= n
	}, 10*time.Second, 2*time.Millisecond)
	require.Len(t, out, n)
	return out
}

// deliver claims so many jobs and notes that SQS took them.
func (f *fixture) deliver(t testing.TB, n int) {
	t.Helper()
	for _, j := range f.claim(t, n) {
		held, err := f.queues.Accept(t.Context(), "orders", j.Shard, []delayqueue.Claimed{j})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, held)
	}
}

// inOutbox are the jobs of the outbox by id, as they would be sent now or ever.
func (f *fixture) inOutbox(t testing.TB) map[string]outbox.Item {
	t.Helper()
	const ever = int64(1) << 45
	items, err := f.outbox.ToReturn(t.Context(), time.UnixMilli(ever), 10_000)
	require.NoError(t, err)
	out := make(map[string]outbox.Item, len(items))
	for _, item := range items {
		require.NotContains(t, out, item.Job.ID)
		out[item.Job.ID] = item
	}
	return out
}

func in(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000Z") }
