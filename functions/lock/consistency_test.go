package main

import (
	"bytes"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/startup"
)

func TestConsistency(t *testing.T) {
	t.Parallel()
	t.Run("every store supports the same calls", func(t *testing.T) {
		t.Parallel()
		f, _ := startAll(t, patience)
		var before []apitest.Reply
		for _, consistency := range []string{"redis", "quorum", "strong"} {
			on := func(body object) object { return with(body, "consistency", consistency) }
			query := "?consistency=" + consistency
			lease := f.Want(t, 200, "POST", report+"/acquire", on(object{"ttl_ms": 60_000, "owner": "ann"}))
			require.ElementsMatch(t, leaseMembers, lease.Members(), "the stores are independent")
			require.Less(t, lease.Number(t, "fence"), int64(1)<<53)
			length := lease.Instant(t, "expires_at").Sub(lease.Instant(t, "acquired_at"))
			require.LessOrEqual(t, length, time.Minute)
			repeated := on(object{"token": lease.Body["token"], "ttl_ms": 60_000})
			require.Equal(t, true, f.Want(t, 200, "POST", report+"/acquire", repeated).Body["reacquired"])
			refused := f.WantProblem(t, 409, "lock_held", "POST", report+"/acquire", on(object{}))
			require.Equal(t, "ann", refused.Body["holder"])

			state := f.Want(t, 200, "GET", report+query, nil)
			require.Equal(t, lease.Body["fence"], state.Objects(t, "holders")[0]["fence"])
			require.NotContains(t, state.Text, lease.String(t, "token"))
			held := on(object{"token": lease.Body["token"]})
			require.Equal(t, lease.Body["fence"], f.Want(t, 200, "POST", report+"/renew", held).Body["fence"])
			for range 2 {
				f.Want(t, 200, "POST", report+"/release", held)
			}
			next := f.Want(t, 200, "POST", report+"/acquire", on(object{"ttl_ms": 60_000}))
			require.Greater(t, next.Number(t, "fence"), lease.Number(t, "fence"))
			other := f.WantProblem(t, 409, "lock_not_held", "POST", report+"/renew", held)
			require.Equal(t, "held_by_other", other.Body["reason"])
			require.EqualValues(t, 1, f.Want(t, 200, "DELETE", report+query, nil).Body["released"])
			nextHeld := on(object{"token": next.Body["token"]})
			forced := f.WantProblem(t, 409, "lock_not_held", "POST", report+"/release", nextHeld)
			require.Equal(t, true, forced.Body["forced"])
			before = append(before, f.Want(t, 200, "POST", report+"/acquire", on(object{"ttl_ms": 60_000})))
		}
		require.Len(t, before, 3)
		require.EqualValues(t, 1, f.Want(t, 200, "DELETE", report, nil).Body["released"], "redis is the default")
		require.Equal(t, true, f.Want(t, 200, "GET", report+"?consistency=quorum", nil).Body["held"])
		require.Equal(t, true, f.Want(t, 200, "GET", report+"?consistency=strong", nil).Body["held"])
	})

	t.Run("a semaphore supports only redis", func(t *testing.T) {
		t.Parallel()
		f, _ := startAll(t, patience)
		for _, consistency := range []string{"quorum", "strong"} {
			for _, call := range []string{"/acquire", "/renew", "/release"} {
				a := f.WantProblem(t, 400, "invalid_request", "POST", pool+call,
					with(routes()[pool+call], "consistency", consistency))
				require.Equal(t, []string{"consistency"}, a.InvalidFields(t))
				require.Contains(t, a.Text, `must be \"redis\" for a semaphore`)
			}
			for _, method := range []string{"GET", "DELETE"} {
				f.WantProblem(t, 400, "invalid_request", method, pool+"?consistency="+consistency, nil)
			}
		}
		f.Want(t, 200, "GET", pool+"?consistency=redis", nil)
	})

	t.Run("not deployed: names the missing setting", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for consistency, setting := range map[string]string{
			"quorum": "SLUICE_LOCK_NODES",
			"strong": "SLUICE_LOCK_TABLE",
		} {
			for _, method := range []string{"GET", "DELETE"} {
				a := f.WantProblem(t, 400, "invalid_request", method, report+"?consistency="+consistency, nil)
				require.Contains(t, a.Text, setting)
			}
			a := f.WantProblem(t, 400, "invalid_request", "POST", report+"/acquire", object{"consistency": consistency})
			require.Contains(t, a.Text, setting)
		}
	})
}

// TestOpen opens the stores that the environment configures.
func TestOpen(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	redis := map[string]string{"SLUICE_REDIS_URL": r.URL}
	cloud := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
	nodes := func(list string) map[string]string { return map[string]string{"SLUICE_LOCK_NODES": list} }
	table := map[string]string{"SLUICE_LOCK_TABLE": "locks"}
	two, three, broken := r.URL+","+r.URL, r.URL+","+r.URL+","+r.URL, r.URL+",%,"+r.URL
	type settings = []map[string]string
	for name, tc := range map[string]struct {
		env            settings
		quorum, strong bool
		problem        string
	}{
		"redis alone":                {settings{redis}, false, false, ""},
		"a quorum":                   {settings{redis, nodes(three)}, true, false, ""},
		"a table":                    {settings{redis, table, cloud}, false, true, ""},
		"all":                        {settings{redis, table, cloud, nodes(three)}, true, true, ""},
		"nothing":                    {nil, false, false, "SLUICE_REDIS_URL is not set"},
		"two nodes":                  {settings{redis, nodes(two)}, false, false, "at least 3 nodes"},
		"a node that is not a URL":   {settings{redis, nodes(broken)}, false, false, "SLUICE_LOCK_NODES, URL 2"},
		"a table without an account": {settings{redis, table}, false, false, "AWS_REGION"},
		"a redis that is not a URL":  {settings{{"SLUICE_REDIS_URL": "%"}}, false, false, "redis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{}
			for _, part := range tc.env {
				maps.Copy(env, part)
			}
			b, err := open(startup.NewEnv("lock", func(name string) string { return env[name] }, io.Discard))
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, b.redis)
			require.Equal(t, tc.quorum, b.quorum != nil)
			require.Equal(t, tc.strong, b.strong != nil)
			f := &fixture{redis: r, backends: b}
			f.Log, f.metrics = &bytes.Buffer{}, &bytes.Buffer{}
			f.route()
			path := "/v1/locks/" + redistest.Name("lock")
			require.Eventually(t, func() bool {
				return f.Send(t, "POST", path+"/acquire", object{"token": goodKey}).Status == 200
			}, patience, 10*time.Millisecond)
		})
	}
}
