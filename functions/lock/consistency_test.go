package main

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestALockHasTheSameLifeUnderEveryConsistency(t *testing.T) {
	t.Parallel()
	f, _ := startAll(t, patience)
	var before []reply
	for _, consistency := range []string{"redis", "quorum", "strong"} {
		in := func(body object) object { return with(body, "consistency", consistency) }
		query := "?consistency=" + consistency
		lease := f.want(t, 200, "POST", report+"/acquire", in(object{"ttl_ms": 60_000, "owner": "ann"}))
		require.ElementsMatch(t, leaseMembers, lease.members(),
			"one holder in each store: they do not know of each other")
		require.Less(t, lease.number(t, "fence"), int64(1)<<53)
		require.LessOrEqual(t, lease.instant(t, "expires_at").Sub(lease.instant(t, "acquired_at")).Milliseconds(),
			int64(60_000))
		require.Equal(t, true, f.want(t, 200, "POST", report+"/acquire",
			in(object{"token": lease.body["token"], "ttl_ms": 60_000})).body["reacquired"])
		require.Equal(t, "ann", f.refused(t, 409, "lock_held", "POST", report+"/acquire", in(object{})).body["holder"])

		state := f.want(t, 200, "GET", report+query, nil)
		require.Equal(t, lease.body["fence"], state.holders(t)[0]["fence"])
		require.NotContains(t, state.text, lease.string(t, "token"))
		held := in(object{"token": lease.body["token"]})
		require.Equal(t, lease.body["fence"], f.want(t, 200, "POST", report+"/renew", held).body["fence"])
		for range 2 {
			f.want(t, 200, "POST", report+"/release", held)
		}
		next := f.want(t, 200, "POST", report+"/acquire", in(object{"ttl_ms": 60_000}))
		require.Greater(t, next.number(t, "fence"), lease.number(t, "fence"))
		other := f.refused(t, 409, "lock_not_held", "POST", report+"/renew", held)
		require.Equal(t, "held_by_other", other.body["reason"])
		require.EqualValues(t, 1, f.want(t, 200, "DELETE", report+query, nil).body["released"])
		forced := f.refused(t, 409, "lock_not_held", "POST", report+"/release", in(object{"token": next.body["token"]}))
		require.Equal(t, true, forced.body["forced"])
		before = append(before, f.want(t, 200, "POST", report+"/acquire", in(object{"ttl_ms": 60_000})))
	}
	require.Len(t, before, 3)
	require.EqualValues(t, 1, f.want(t, 200, "DELETE", report, nil).body["released"], "redis is the default")
	require.Equal(t, true, f.want(t, 200, "GET", report+"?consistency=quorum", nil).body["held"])
	require.Equal(t, true, f.want(t, 200, "GET", report+"?consistency=strong", nil).body["held"])
}

func TestSemaphoresAreOnRedisOnly(t *testing.T) {
	t.Parallel()
	f, _ := startAll(t, patience)
	for _, consistency := range []string{"quorum", "strong"} {
		for _, call := range []string{"/acquire", "/renew", "/release"} {
			a := f.refused(t, 400, "invalid_request", "POST", pool+call,
				with(routes()[pool+call], "consistency", consistency))
			require.Equal(t, []string{"consistency"}, a.badFields(t))
			require.Contains(t, a.text, "semaphores know no other")
		}
		for _, method := range []string{"GET", "DELETE"} {
			f.refused(t, 400, "invalid_request", method, pool+"?consistency="+consistency, nil)
		}
	}
	f.want(t, 200, "GET", pool+"?consistency=redis", nil)
}

func TestAConsistencyThatIsNotDeployedSaysWhichSettingIsMissing(t *testing.T) {
	t.Parallel()
	f := start(t)
	for consistency, setting := range map[string]string{"quorum": "SLUICE_LOCK_NODES", "strong": "SLUICE_LOCK_TABLE"} {
		for _, method := range []string{"GET", "DELETE"} {
			require.Contains(t, f.refused(t, 400, "invalid_request", method, report+"?consistency="+consistency,
				nil).text, setting)
		}
		require.Contains(t, f.refused(t, 400, "invalid_request", "POST", report+"/acquire",
			object{"consistency": consistency}).text, setting)
	}
}

func TestTheEnvironmentSaysWhichStoresThereAre(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	redis := map[string]string{"SLUICE_REDIS_URL": r.URL}
	cloud := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
	nodes := func(list string) map[string]string { return map[string]string{"SLUICE_LOCK_NODES": list} }
	table := map[string]string{"SLUICE_LOCK_TABLE": "locks"}
	for name, tc := range map[string]struct {
		env            []map[string]string
		quorum, strong bool
		problem        string
	}{
		"redis alone": {[]map[string]string{redis}, false, false, ""},
		"a quorum": {[]map[string]string{redis, nodes(r.URL + "," + r.URL + "," + r.URL)}, true,
			false, ""},
		"a table": {[]map[string]string{redis, table, cloud}, false, true, ""},
		"all": {[]map[string]string{redis, table, cloud,
			nodes(r.URL + "," + r.URL + "," + r.URL)}, true, true, ""},
		"nothing": {nil, false, false, "SLUICE_REDIS_URL is not set"},
		"two nodes": {[]map[string]string{redis, nodes(r.URL + "," + r.URL)}, false, false,
			"at least 3 nodes"},
		"a node that is no URL": {[]map[string]string{redis, nodes(r.URL + ",%," + r.URL)}, false, false,
			"lock node 2"},
		"a table without an account": {[]map[string]string{redis, table}, false, false, "AWS_REGION"},
		"a redis that is no URL":     {[]map[string]string{{"SLUICE_REDIS_URL": "%"}}, false, false, "redis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{}
			for _, part := range tc.env {
				maps.Copy(env, part)
			}
			b, err := open(func(name string) string { return env[name] })
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, b.redis)
			require.Equal(t, tc.quorum, b.quorum != nil)
			require.Equal(t, tc.strong, b.strong != nil)
			f := &fixture{redis: r, backends: b}
			f.log, f.metrics = &bytes.Buffer{}, &bytes.Buffer{}
			f.route()
			path := "/v1/locks/" + redistest.Name("lock")
			require.Eventually(t, func() bool {
				return f.send(t, "POST", path+"/acquire", object{"token": goodKey}).status == 200
			}, patience, 10*time.Millisecond)
		})
	}
}
