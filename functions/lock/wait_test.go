package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("released: grants the lock to the waiter, which is no longer counted", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for target, body := range map[string]object{report: {}, pool: {"capacity": 1}} {
			lease := f.Want(t, 200, "POST", target+"/acquire", with(body, "ttl_ms", 3_600_000))
			answered := f.SendAsync(t.Context(), t, "POST", target+"/acquire", with(body, "wait_ms", 20_000))
			require.Eventually(t, func() bool {
				return f.Send(t, "GET", target, nil).Body["waiters"] == 1.0
			}, patience, time.Millisecond)
			f.Want(t, 200, "POST", target+"/release", object{"token": lease.Body["token"]})
			next := apitest.Read(t, <-answered)
			require.Equal(t, 200, next.Status, next.Text)
			require.Greater(t, next.Number(t, "fence"), lease.Number(t, "fence"))
			require.EqualValues(t, 0, f.Want(t, 200, "GET", target, nil).Body["waiters"])
		}
	})

	t.Run("timed out or canceled: refuses, and leaves no waiter behind", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.Want(t, 200, "POST", report+"/acquire", object{"ttl_ms": 3_600_000, "owner": "ann"})
		started := time.Now()
		a := f.WantProblem(t, 409, "lock_held", "POST", report+"/acquire", object{"wait_ms": 150})
		require.GreaterOrEqual(t, time.Since(started), 150*time.Millisecond)
		require.Equal(t, "ann", a.Body["holder"])

		ctx, cancel := context.WithCancel(t.Context())
		answered := f.SendAsync(ctx, t, "POST", report+"/acquire", object{"wait_ms": 20_000})
		require.Eventually(t, func() bool {
			return f.Send(t, "GET", report, nil).Body["waiters"] == 1.0
		}, patience, time.Millisecond)
		cancel() // as when the function's deadline approaches
		a = apitest.Read(t, <-answered)
		require.Equal(t, 409, a.Status, a.Text)
		require.Equal(t, "ann", a.Body["holder"])
		require.EqualValues(t, 0, f.Want(t, 200, "GET", report, nil).Body["waiters"])
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := start(t)
	measured := func(name string) (n int) {
		for line := range strings.SplitSeq(strings.TrimSpace(f.metrics.String()), "\n") {
			var values object
			require.NoError(t, json.Unmarshal([]byte(line), &values))
			if _, ok := values[name]; ok {
				n++
			}
		}
		return n
	}
	lease := f.Want(t, 200, "POST", report+"/acquire", nil)
	require.Zero(t, measured("lock_wait"), "this call did not wait")
	f.WantProblem(t, 409, "lock_held", "POST", report+"/acquire", object{"wait_ms": 1})
	require.Equal(t, 1, measured("lock_wait"))
	f.Want(t, 200, "POST", report+"/release", object{"token": lease.Body["token"]})
	require.Equal(t, 1, measured("lock_hold"))
	f.WantProblem(t, 409, "lock_not_held", "POST", report+"/release", object{"token": goodKey})
	require.Equal(t, 1, measured("lock_hold"), "a refused release emits no lock_hold")
	require.NotContains(t, f.metrics.String(), "report", "names of locks are not dimensions")
}
