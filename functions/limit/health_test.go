package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	t.Run("every dependency: has a check in the report", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		a := f.Want(t, 200, "GET", "/v1/health", nil)
		require.Equal(t, "ok", a.Body["status"])
		rows := f.rows(t, 200)
		require.Equal(t, map[string]string{
			"redis": "ok", "redis_eviction_policy": "ok", "redis_memory": "ok", "redis_cluster": "ok",
			"clock_skew": "ok", "dispatcher": "unknown", "dynamodb": "ok",
		}, rows)
		beat := func(ago time.Duration) {
			at := time.Now().Add(-ago).UnixMilli()
			require.NoError(t, f.redis.Client.Set(t.Context(), delayqueue.HeartbeatKey, at, 0).Err())
		}
		beat(time.Second)
		require.Equal(t, "ok", f.rows(t, 200)["dispatcher"])
		beat(time.Hour)
		require.Equal(t, "warn", f.rows(t, 200)["dispatcher"])

		config := func(args ...any) {
			require.NoError(t, f.redis.Client.Do(t.Context(), append([]any{"CONFIG", "SET"}, args...)...).Err())
		}
		config("maxmemory", "1gb")
		require.Equal(t, "ok", f.rows(t, 200)["redis_memory"])
		config("maxmemory", "1")
		require.Equal(t, "warn", f.rows(t, 200)["redis_memory"])
		config("maxmemory", "0", "maxmemory-policy", "allkeys-lru")
		require.Equal(t, "unsafe", f.rows(t, 503)["redis_eviction_policy"], "locks and jobs may be evicted")
		config("maxmemory-policy", "noeviction")
		f.rows(t, 200)

		require.NoError(t, f.redis.Server.Kill())
		rows = f.rows(t, 503)
		require.Equal(t, "down", rows["redis"])
		require.Equal(t, "ok", rows["dynamodb"])
	})

	t.Run("cluster: is healthy while every slot is covered", func(t *testing.T) {
		t.Parallel()
		r := redistest.Cluster(t)
		f := wire(t, r)
		rows := f.rows(t, 200)
		require.Equal(t, "ok", rows["redis_cluster"])
		require.Equal(t, "ok", rows["redis_memory"])
		// The client sends CONFIG SET to one node only.
		require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		require.Equal(t, "unsafe", f.rows(t, 503)["redis_eviction_policy"])
		require.NoError(t, r.Nodes[2].Kill())
		require.Eventually(t, func() bool {
			a := f.Send(t, "GET", "/v1/health", nil)
			return a.Status == 503 && strings.Contains(a.Text, "not every slot is covered") ||
				strings.Contains(a.Text, `"redis_cluster","status":"down"`)
		}, 20*time.Second, 100*time.Millisecond)
	})

	t.Run("clock skew: over half a second is a warning", func(t *testing.T) {
		t.Parallel()
		for by, want := range map[time.Duration]string{
			0: "ok", 400 * time.Millisecond: "ok", -400 * time.Millisecond: "ok",
			600 * time.Millisecond: "warn", -time.Hour: "warn",
		} {
			require.Equal(t, want, skewResult(by).Status, by)
		}
	})
}

// rows reads the health report and returns the status of each check by its name.
func (f *fixture) rows(t *testing.T, status int) map[string]string {
	t.Helper()
	a := f.Want(t, status, "GET", "/v1/health", nil)
	list, _ := a.Body["checks"].([]any)
	out := map[string]string{}
	for _, entry := range list {
		row, _ := entry.(object)
		name, _ := row["name"].(string)
		out[name], _ = row["status"].(string)
		require.Contains(t, row, "latency_ms")
		detail, _ := row["detail"].(string)
		require.NotContains(t, detail, "127.0.0.1", "callers see no internal address")
	}
	return out
}
