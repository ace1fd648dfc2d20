package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = map[string]any

// fixture is the function on a Redis and a DynamoDB of the test's own.
type fixture struct {
	*api
	redis *redistest.Redis
	aws   *awstest.AWS
	http  http.Handler
	log   *bytes.Buffer
}

func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t))
}

// wire makes the function as main does, with a log that is kept.
func wire(t testing.TB, r *redistest.Redis) *fixture {
	t.Helper()
	f := &fixture{redis: r, aws: awstest.Start(t), log: &bytes.Buffer{}}
	table := f.aws.CreateTable(t, dynamopolicy.TableInput(redistest.Name("policies")))
	conn, err := redisconn.Open(redisconn.Config{URLs: redisconn.SplitList(r.URL), Cluster: r.Cluster})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	store := dynamopolicy.New(f.aws.DynamoDB, table)
	f.api = &api{
		limiter: ratelimit.New(t.Context(), ratelimit.NewRedis(conn)), store: store,
		cache:  policy.NewCache(store, policy.CacheConfig{}),
		doctor: newDoctor(conn, store), log: slog.New(slog.NewTextHandler(f.log, nil)), metrics: telemetry.Discard(),
	}
	f.http = f.routes()
	return f
}

// reply is a response with its body read.
type reply struct {
	status int
	header http.Header
	body   object
	text   string
}

// send sends body: nil, text, or what becomes JSON.
func (f *fixture) send(t testing.TB, method, target string, body any, headers ...string) reply {
	t.Helper()
	content, isText := body.(string)
	if body != nil && !isText {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		content = string(text)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(content))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return f.serve(t, r)
}

func (f *fixture) serve(t testing.TB, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	f.http.ServeHTTP(w, r)
	a := reply{status: w.Code, header: w.Header(), text: w.Body.String()}
	if a.text != "" {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a.body), a.text)
	}
	require.NotEmpty(t, a.header.Get("X-Request-Id"))
	if a.status >= http.StatusBadRequest && a.body["checks"] == nil { // a health report is no problem
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
		require.EqualValues(t, a.status, a.body["status"])
		require.Equal(t, a.header.Get("X-Request-Id"), a.body["instance"])
		for _, member := range []string{"type", "title", "detail", "code"} {
			require.NotEmpty(t, a.body[member], "%s of %s", member, a.text)
		}
	}
	return a
}

// want sends and demands a status.
func (f *fixture) want(t testing.TB, status int, method, target string, body any, headers ...string) reply {
	t.Helper()
	a := f.send(t, method, target, body, headers...)
	require.Equal(t, status, a.status, "%s %s: %s", method, target, a.text)
	return a
}

// put stores a policy with these rules.
func (f *fixture) put(t testing.TB, name string, rules ...object) {
	t.Helper()
	f.want(t, http.StatusCreated, http.MethodPut, "/v1/policies/"+name, object{"rules": rules})
}

func rule(name, algorithm string, limit, windowMS int) object {
	return object{"name": name, "algorithm": algorithm, "limit": limit, "window_ms": windowMS}
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

// gatedStore is a policy store that can be away.
type gatedStore struct {
	*dynamopolicy.Store

	away atomic.Bool
}

// Get implements policy.Getter.
func (g *gatedStore) Get(ctx context.Context, name string) (policy.Stored, error) {
	if g.away.Load() {
		return policy.Stored{}, fault.Unavailable("policy", errors.New("away"))
	}
	return g.Store.Get(ctx, name)
}

// cache is one in front of the store that forgets soon.
func (g *gatedStore) cache() *policy.Cache {
	return policy.NewCache(g, policy.CacheConfig{MaxAge: 50 * time.Millisecond, MaxAbsent: 50 * time.Millisecond})
}
