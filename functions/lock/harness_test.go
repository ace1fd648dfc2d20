package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = map[string]any

// patience is a time for a store that a loaded machine keeps to. Tests of a store that is away have
// main's.
const patience = 10 * time.Second

// fixture is the function on stores of the test's own.
type fixture struct {
	redis    *redistest.Redis
	backends backends
	http     http.Handler
	log      *bytes.Buffer
	metrics  *bytes.Buffer
}

// start has one Redis, as most deployments.
func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t), patience)
}

// wire makes the function as main does, with a log and metrics that are kept.
func wire(t testing.TB, r *redistest.Redis, timeout time.Duration) *fixture {
	t.Helper()
	redisconn.SilenceDriver()
	f := &fixture{redis: r, log: &bytes.Buffer{}, metrics: &bytes.Buffer{}}
	backend := lock.NewRedis(connect(t, r, timeout))
	t.Cleanup(func() { _ = backend.Close() })
	f.backends.redis = backend
	f.route()
	return f
}

// route makes the handler of the backends that there are.
func (f *fixture) route() {
	f.http = newAPI(f.backends, slog.New(slog.NewTextHandler(f.log, nil)), telemetry.NewMetrics(f.metrics, "lock"))
}

// startAll has every kind of store. It returns the nodes of the quorum, whose calls may take so
// long.
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

// loseDynamoDB puts an address at which nobody listens in the place of DynamoDB.
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

// reply is a response with its body read.
type reply struct {
	status int
	header http.Header
	body   object
	text   string
}

// request has a body: nil, text, or what becomes JSON.
func request(ctx context.Context, t testing.TB, method, target string, body any) *http.Request {
	t.Helper()
	content, isText := body.(string)
	if body != nil && !isText {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		content = string(text)
	}
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(content))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (f *fixture) send(t testing.TB, method, target string, body any) reply {
	t.Helper()
	return f.serve(t, request(t.Context(), t, method, target, body))
}

func (f *fixture) serve(t testing.TB, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	f.http.ServeHTTP(w, r)
	return read(t, w)
}

// read demands what every answer has.
func read(t testing.TB, w *httptest.ResponseRecorder) reply {
	t.Helper()
	a := reply{status: w.Code, header: w.Header(), text: w.Body.String()}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a.body), a.text)
	require.NotEmpty(t, a.header.Get("X-Request-Id"))
	if a.status < http.StatusBadRequest {
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
		return a
	}
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	require.EqualValues(t, a.status, a.body["status"])
	require.Equal(t, a.header.Get("X-Request-Id"), a.body["instance"])
	for _, member := range []string{"type", "title", "detail", "code"} {
		require.NotEmpty(t, a.body[member], "%s of %s", member, a.text)
	}
	return a
}

// want sends and demands a status.
func (f *fixture) want(t testing.TB, status int, method, target string, body any) reply {
	t.Helper()
	a := f.send(t, method, target, body)
	require.Equal(t, status, a.status, "%s %s: %s", method, target, a.text)
	return a
}

// refused sends, and demands a problem with a status and a code.
func (f *fixture) refused(t testing.TB, status int, code, method, target string, body any) reply {
	t.Helper()
	a := f.want(t, status, method, target, body)
	require.Equal(t, code, a.body["code"], a.text)
	return a
}

// later sends beside the test, and gives the answer when it comes.
func (f *fixture) later(ctx context.Context, t testing.TB, method, target string,
	body any) <-chan *httptest.ResponseRecorder {
	t.Helper()
	r := request(ctx, t, method, target, body)
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		f.http.ServeHTTP(w, r)
		answered <- w
	}()
	return answered
}

func (a reply) string(t testing.TB, member string) string {
	t.Helper()
	s, ok := a.body[member].(string)
	require.True(t, ok, "%s of %s", member, a.text)
	return s
}

func (a reply) number(t testing.TB, member string) int64 {
	t.Helper()
	n, ok := a.body[member].(float64)
	require.True(t, ok, "%s of %s", member, a.text)
	require.Equal(t, float64(int64(n)), n)
	return int64(n)
}

func (a reply) instant(t testing.TB, member string) time.Time {
	t.Helper()
	text := a.string(t, member)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, text)
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// badFields are the fields that a 400 names.
func (a reply) badFields(t testing.TB) (names []string) {
	t.Helper()
	list, _ := a.body["errors"].([]any)
	for _, e := range list {
		entry, ok := e.(object)
		require.True(t, ok, a.text)
		require.NotEmpty(t, entry["message"])
		name, _ := entry["field"].(string)
		names = append(names, name)
	}
	return names
}

// members are the names of an answer's members, which are all that the contract has.
func (a reply) members() (names []string) {
	for name := range a.body {
		names = append(names, name)
	}
	return names
}
