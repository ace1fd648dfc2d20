package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = apitest.Object

// patience is a call timeout that is long enough on a loaded machine. Tests of an unavailable store
// use productionTimeout instead.
const patience = 10 * time.Second

// fixture is the function with stores that the test starts.
type fixture struct {
	apitest.API

	redis    *redistest.Redis
	backends backends
	metrics  *bytes.Buffer
}

// start returns the function with one Redis, as in most deployments.
func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t), patience)
}

// wire builds the function as main does, and keeps its log and metrics.
func wire(t testing.TB, r *redistest.Redis, timeout time.Duration) *fixture {
	t.Helper()
	redisconn.SilenceDriver()
	f := &fixture{redis: r, metrics: &bytes.Buffer{}}
	f.Log = &bytes.Buffer{}
	backend := lock.NewRedis(connect(t, r, timeout))
	t.Cleanup(func() { _ = backend.Close() })
	f.backends.redis = backend
	f.route()
	return f
}

// route builds the handler for the current backends.
func (f *fixture) route() {
	log := slog.New(slog.NewTextHandler(f.Log, nil))
	f.Handler = newAPI(f.backends, log, telemetry.NewMetrics(f.metrics, "lock"))
}

// startAll returns the function with every kind of store, and the nodes of the quorum. timeout is
// the timeout of one call to Redis.
func startAll(t testing.TB, timeout time.Duration) (*fixture, []*redistest.Redis) {
	t.Helper()
	f := wire(t, redistest.Single(t), timeout)
	var nodes []*redistest.Redis
	var conns []*redisconn.Conn
	for range 3 {
		node := redistest.Single(t)
		nodes, conns = append(nodes, node), append(conns, connect(t, node, timeout))
	}
	quorum, err := lock.NewQuorum(conns)
	require.NoError(t, err)
	cloud := awstest.Start(t)
	f.backends.quorum = quorum
	f.backends.strong = dynamolock.New(cloud.DynamoDB,
		cloud.CreateTable(t, dynamolock.TableInput(redistest.Name("locks"))))
	f.route()
	return f, nodes
}

// loseDynamoDB replaces DynamoDB with an address that refuses connections.
func (f *fixture) loseDynamoDB(t testing.TB) {
	t.Helper()
	options := awstest.Start(t).DynamoDB.Options()
	options.BaseEndpoint = aws.String("http://127.0.0.1:1")
	f.backends.strong = dynamolock.New(dynamodb.New(options), "none")
	f.route()
}

func connect(t testing.TB, r *redistest.Redis, timeout time.Duration) *redisconn.Conn {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Config{URLs: redisconn.SplitList(r.URL), Cluster: r.Cluster,
		CallTimeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
