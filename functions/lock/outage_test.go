package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/lock"
)

// answerLimit is the maximum duration of a call while its store is unavailable.
const answerLimit = 500 * time.Millisecond

// productionTimeout selects the default call timeout of redisconn, as main does.
const productionTimeout = 0

// call is one request to the API.
type call struct {
	method, target string
	body           any
	reads          bool
}

// calls returns one call to every route with the given consistency. The calls have the token that
// holds the locks: with any other token, a script refuses the call before it writes, and the test
// would not notice that the store is read-only. Reads come first, because the failures of later
// calls open the circuit breaker.
func calls(consistency string) []call {
	var reads, writes []call
	for _, target := range []string{report, pool} {
		if target == pool && consistency != "redis" {
			continue
		}
		reads = append(reads, call{"GET", target + "?consistency=" + consistency, nil, true})
		writes = append(writes, call{"DELETE", target + "?consistency=" + consistency, nil, false})
		for _, c := range []string{"/acquire", "/renew", "/release"} {
			writes = append(writes, call{"POST", target + c,
				with(with(routes()[target+c], "token", goodKey), "consistency", consistency), false})
		}
	}
	writes = append(writes, call{"POST", "/v1/locks/other/acquire",
		object{"wait_ms": 20_000, "consistency": consistency}, false})
	return append(reads, writes...)
}

// requireUnavailable requires a 503 that says when to retry and does not disclose internals.
func requireUnavailable(t testing.TB, a apitest.Reply) {
	t.Helper()
	require.Equal(t, 503, a.Status, a.Text)
	require.Equal(t, "store_unavailable", a.Body["code"])
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.EqualValues(t, 1000, a.Body["retry_after_ms"])
	text := strings.ToLower(strings.ReplaceAll(a.Text, a.Header.Get("X-Request-Id"), ""))
	for _, secret := range []string{"127.0.0.1", "dial", "refused", "timeout", "redis:", "readonly", "oom", "breaker",
		"node 1", "operation error", "goroutine"} {
		require.NotContains(t, text, secret, "the answer does not disclose internals")
	}
}

func allUnavailable(t *testing.T, _ call, a apitest.Reply) {
	t.Helper()
	requireUnavailable(t, a)
}

// inTime makes each call during an outage and requires that all calls are answered within
// answerLimit. It tries up to three outages, because calls may be slow on a loaded machine. A call
// that waits for the store is late in every outage.
func inTime(t *testing.T, outage func(*testing.T) *fixture, calls []call, check func(*testing.T, call, apitest.Reply)) {
	t.Helper()
	late := map[string]time.Duration{}
	for range 3 {
		clear(late)
		f := outage(t)
		for _, c := range calls {
			r := apitest.NewRequest(t.Context(), t, c.method, c.target, c.body)
			started := time.Now()
			a := f.Serve(t, r)
			if took := time.Since(started); took >= answerLimit {
				late[c.method+" "+c.target] = took
			}
			check(t, c, a)
		}
		if len(late) == 0 {
			return
		}
	}
	require.Empty(t, late)
}

func TestOutage(t *testing.T) {
	t.Run("of Redis: every call fails within 500 ms", func(t *testing.T) {
		for name, tc := range map[string]struct {
			lose  func(*testing.T, *redistest.Redis)
			reads bool // reads still succeed
		}{
			"dead":    {func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Kill()) }, false},
			"hanging": {func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Pause()) }, false},
			"full": {func(t *testing.T, r *redistest.Redis) {
				require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
			}, true},
			"read-only": {func(t *testing.T, r *redistest.Redis) {
				require.NoError(t, r.Client.SlaveOf(t.Context(), "127.0.0.1", "1").Err())
			}, true},
		} {
			t.Run(name, func(t *testing.T) {
				outage := func(t *testing.T) *fixture {
					f := wire(t, redistest.Single(t), productionTimeout)
					for _, route := range []string{report, pool} { // opens the connections and loads the scripts
						body := with(with(routes()[route+"/acquire"], "token", goodKey), "ttl_ms", 60_000)
						require.Eventually(t, func() bool {
							return f.Send(t, "POST", route+"/acquire", body).Status == 200
						}, patience, time.Millisecond)
					}
					tc.lose(t, f.redis)
					return f
				}
				inTime(t, outage, calls("redis"), func(t *testing.T, c call, a apitest.Reply) {
					t.Helper()
					switch {
					case c.reads && tc.reads:
						require.Equal(t, 200, a.Status, a.Text)
					case name == "full" && !strings.HasSuffix(c.target, "/acquire"):
						// A full Redis still renews and releases held locks. After one of the calls
						// has released a lock, later calls answer 409.
						require.Contains(t, []int{200, 204, 409}, a.Status, a.Text)
					case name == "full" && strings.HasPrefix(c.target, pool):
						// A full Redis refuses a write only if the script has written nothing
						// before. Acquiring a permit succeeds if its script deletes a key first.
						require.NotEqual(t, 500, a.Status, a.Text)
					default:
						requireUnavailable(t, a)
					}
				})
			})
		}
	})

	t.Run("of DynamoDB: calls with consistency=strong fail within 500 ms, others succeed", func(t *testing.T) {
		outage := func(t *testing.T) *fixture {
			f := start(t)
			f.loseDynamoDB(t)
			return f
		}
		inTime(t, outage, calls("strong"), allUnavailable)
		outage(t).Want(t, 200, "POST", report+"/acquire", nil)
	})

	t.Run("of quorum nodes: calls succeed without one node, and fail in 500 ms without two", func(t *testing.T) {
		f, nodes := startAll(t, patience)
		lease := f.Want(t, 200, "POST", report+"/acquire", object{"consistency": "quorum", "ttl_ms": 60_000})
		require.NoError(t, nodes[0].Server.Kill())
		held := object{"token": lease.Body["token"], "consistency": "quorum"}
		require.Equal(t, lease.Body["fence"], f.Want(t, 200, "POST", report+"/renew",
			with(held, "ttl_ms", 60_000)).Body["fence"])
		f.WantProblem(t, 409, "lock_held", "POST", report+"/acquire", object{"consistency": "quorum"})
		f.Want(t, 200, "POST", report+"/release", held)

		inTime(t, func(t *testing.T) *fixture {
			f, nodes := startAll(t, lock.NodeTimeout)
			require.NoError(t, nodes[0].Server.Kill())
			require.NoError(t, nodes[1].Server.Pause())
			return f
		}, calls("quorum"), allUnavailable)
	})

	t.Run("after recovery: the same token acquires and releases", func(t *testing.T) {
		f := wire(t, redistest.Single(t), productionTimeout)
		require.NoError(t, f.redis.Server.Pause())
		body := object{"token": goodKey, "ttl_ms": 60_000}
		require.Eventually(t, func() bool {
			return f.Send(t, "POST", report+"/acquire", body).Status == 503
		}, patience, time.Millisecond)
		require.NoError(t, f.redis.Server.Resume())
		require.Eventually(t, func() bool {
			return f.Send(t, "POST", report+"/acquire", body).Status == 200
		}, patience, 10*time.Millisecond)
		require.Eventually(t, func() bool {
			return f.Send(t, "POST", report+"/release", object{"token": goodKey}).Status == 200
		}, patience, 10*time.Millisecond)
		require.Equal(t, false, f.Want(t, 200, "GET", report, nil).Body["held"])
	})

	t.Run("past the request's deadline: 504", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.Want(t, 200, "GET", report, nil)
		require.NoError(t, f.redis.Server.Pause())
		for route, body := range routes() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			a := f.Serve(t, apitest.NewRequest(ctx, t, "POST", route, body))
			cancel()
			require.Equal(t, 504, a.Status, a.Text)
			require.Equal(t, "deadline_exceeded", a.Body["code"])
			require.NotContains(t, a.Text, "context")
		}
	})
}
