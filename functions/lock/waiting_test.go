package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWaiterGetsTheLockWhenItIsReleasedAndIsCountedUntilThen(t *testing.T) {
	t.Parallel()
	f := start(t)
	for target, body := range map[string]object{report: {}, pool: {"capacity": 1}} {
		lease := f.want(t, 200, "POST", target+"/acquire", with(body, "ttl_ms", 3_600_000))
		answered := f.later(t.Context(), t, "POST", target+"/acquire", with(body, "wait_ms", 20_000))
		require.Eventually(t, func() bool {
			return f.send(t, "GET", target, nil).body["waiters"] == 1.0
		}, patience, time.Millisecond)
		f.want(t, 200, "POST", target+"/release", object{"token": lease.body["token"]})
		next := read(t, <-answered)
		require.Equal(t, 200, next.status, next.text)
		require.Greater(t, next.number(t, "fence"), lease.number(t, "fence"))
		require.EqualValues(t, 0, f.want(t, 200, "GET", target, nil).body["waiters"])
	}
}

func TestAWaitThatEndsIsARefusalAndLeavesNobodyInTheLine(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.want(t, 200, "POST", report+"/acquire", object{"ttl_ms": 3_600_000, "owner": "ann"})
	began := time.Now()
	a := f.refused(t, 409, "lock_held", "POST", report+"/acquire", object{"wait_ms": 150})
	require.GreaterOrEqual(t, time.Since(began), 150*time.Millisecond)
	require.Equal(t, "ann", a.body["holder"])

	ctx, leave := context.WithCancel(t.Context())
	answered := f.later(ctx, t, "POST", report+"/acquire", object{"wait_ms": 20_000})
	require.Eventually(t, func() bool {
		return f.send(t, "GET", report, nil).body["waiters"] == 1.0
	}, patience, time.Millisecond)
	leave() // the function's own time is over
	a = read(t, <-answered)
	require.Equal(t, 409, a.status, a.text)
	require.Equal(t, "ann", a.body["holder"])
	require.EqualValues(t, 0, f.want(t, 200, "GET", report, nil).body["waiters"])
}

func TestWaitsAndHoldsAreMeasured(t *testing.T) {
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
	lease := f.want(t, 200, "POST", report+"/acquire", nil)
	require.Zero(t, measured("lock_wait"), "it did not wait")
	f.refused(t, 409, "lock_held", "POST", report+"/acquire", object{"wait_ms": 1})
	require.Equal(t, 1, measured("lock_wait"))
	f.want(t, 200, "POST", report+"/release", object{"token": lease.body["token"]})
	require.Equal(t, 1, measured("lock_hold"))
	f.refused(t, 409, "lock_not_held", "POST", report+"/release", object{"token": goodKey})
	require.Equal(t, 1, measured("lock_hold"), "a refusal is no hold")
	require.NotContains(t, f.metrics.String(), "report", "no name of a caller's becomes a dimension")
}
