package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type object = apitest.Object

// fixture is the function with its own Redis and DynamoDB.
type fixture struct {
	*api
	apitest.API

	redis *redistest.Redis
	aws   *awstest.AWS
}

func start(t testing.TB) *fixture {
	t.Helper()
	return wire(t, redistest.Single(t))
}

// wire builds the function as main does, with a log that tests can read.
func wire(t testing.TB, r *redistest.Redis) *fixture {
	t.Helper()
	f := &fixture{redis: r, aws: awstest.Start(t)}
	f.Log = &bytes.Buffer{}
	table := f.aws.CreateTable(t, dynamopolicy.TableInput(redistest.Name("policies")))
	conn, err := redisconn.Open(redisconn.Config{URLs: redisconn.SplitList(r.URL), Cluster: r.Cluster})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	store := dynamopolicy.New(f.aws.DynamoDB, table)
	f.api = &api{
		limiter: ratelimit.New(t.Context(), conn),
		store:   store,
		cache:   policy.NewCache(store, policy.CacheConfig{}),
		checker: newHealthChecker(conn, store),
		log:     slog.New(slog.NewTextHandler(f.Log, nil)),
		metrics: telemetry.Discard(),
	}
	f.Handler = f.routes()
	return f
}

// put creates a policy with these rules.
func (f *fixture) put(t testing.TB, name string, rules ...object) {
	t.Helper()
	f.Want(t, http.StatusCreated, http.MethodPut, "/v1/policies/"+name, object{"rules": rules})
}

// remaining returns the number of remaining units of a key.
func (f *fixture) remaining(t testing.TB, policyName, key string) int64 {
	t.Helper()
	target := "/v1/limits/" + policyName + "?key=" + url.QueryEscape(key)
	return f.Want(t, http.StatusOK, http.MethodGet, target, nil).Number(t, "remaining")
}

func rule(name, algorithm string, limit, windowMS int) object {
	return object{"name": name, "algorithm": algorithm, "limit": limit, "window_ms": windowMS}
}

// switchableStore is a policy store that a test can make unavailable.
type switchableStore struct {
	*dynamopolicy.Store

	unavailable atomic.Bool
}

// Get implements policy.Getter.
func (s *switchableStore) Get(ctx context.Context, name string) (policy.Stored, error) {
	if s.unavailable.Load() {
		return policy.Stored{}, fault.Unavailable("policy", errors.New("made unavailable by the test"))
	}
	return s.Store.Get(ctx, name)
}

// cache returns a cache of the store. Its entries expire after 50 ms.
func (s *switchableStore) cache() *policy.Cache {
	return policy.NewCache(s, policy.CacheConfig{MaxAge: 50 * time.Millisecond, MaxAbsent: 50 * time.Millisecond})
}
