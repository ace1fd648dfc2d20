package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

// hanging is a Redis that hangs, by a clock of the test's own: the calls time out together, as soon
// as so many of them wait.
type hanging struct {
	together int32
	calls    atomic.Int32
	alone    atomic.Int32  // calls that waited until their own time was over
	lapsed   chan struct{} // closed when the time is over
}

// hang lets the function's Redis hang from now on, until so many calls wait.
func (f *fixture) hang(together int32) *hanging {
	h := &hanging{together: together, lapsed: make(chan struct{})}
	f.conn.Client().AddHook(h)
	return h
}

// DialHook implements redis.Hook.
func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *hanging) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := h.wait(ctx)
		cmd.SetErr(err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *hanging) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := h.wait(ctx)
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

func (h *hanging) wait(ctx context.Context) error {
	if h.calls.Add(1) == h.together {
		close(h.lapsed)
	}
	select {
	case <-h.lapsed:
	case <-ctx.Done():
		h.alone.Add(1)
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// mixedBatch has plain and durable jobs in turn: p0, d1, p2, d3, …
func mixedBatch(n int) object {
	list := make([]object, n)
	for i := range list {
		list[i] = object{"payload": i, "id": fmt.Sprintf("p%d", i), "delay_ms": 60_000}
		if i%2 == 1 {
			list[i]["id"], list[i]["durability"] = fmt.Sprintf("d%d", i), "dynamodb"
		}
	}
	return object{"jobs": list}
}

// Durable jobs and plain ones wait for Redis at the same time: the second wait would begin only
// after the first had lapsed.
func TestABatchOfPlainAndDurableJobsWaitsOnceForARedisThatHangs(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": "the function is warm"})
	h := f.hang(2)
	a := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", mixedBatch(6))
	require.Zero(t, h.alone.Load(), "plain and durable jobs wait together")
	require.EqualValues(t, 2, h.calls.Load(), "nothing is asked of Redis again")
	require.Equal(t, "enqueue-outbox", a.Header.Get("Sluice-Degraded"))
	results, _ := a.Body["results"].([]any)
	require.Len(t, results, 6)
	there := f.inOutbox(t)
	for i, result := range results {
		id := fmt.Sprintf("%c%d", "pd"[i%2], i)
		require.Equal(t, id, result.(object)["id"], "in the order of the request")
		require.Equal(t, "scheduled", result.(object)["state"])
		require.Equal(t, i%2 == 1, there[id].Durable)
		require.Equal(t, fmt.Sprint(i), string(there[id].Job.Payload))
	}
}

func TestABatchOfPlainAndDurableJobsIsTakenInInItsOrder(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 4, "id": "p4", "delay_ms": 60_000})
	f.post(t, jobs, object{"payload": "another", "id": "d7", "delay_ms": 60_000, "durability": "dynamodb"})
	a := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", mixedBatch(60))
	require.Empty(t, a.Header.Get("Sluice-Degraded"))
	results, _ := a.Body["results"].([]any)
	require.Len(t, results, 60)
	there := f.inOutbox(t)
	require.Len(t, there, 30, "the durable ones, and no others")
	for i, result := range results {
		id := fmt.Sprintf("%c%d", "pd"[i%2], i)
		require.Equal(t, id, result.(object)["id"])
		require.Equal(t, i == 4 || i == 7, result.(object)["duplicate"], id)
		require.Equal(t, i == 7, result.(object)["payload_differs"] == true, id)
		info, err := f.queues.Get(t.Context(), "orders", id)
		require.NoError(t, err)
		require.Equal(t, i%2 == 1, info.Durable)
	}
}

func TestAnIDThatABatchHasPlainAndDurableIsTheDurableOnes(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"redis is there": func(*fixture) {},
		"redis is away":  func(f *fixture) { f.hang(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			f.post(t, jobs, object{"payload": 1})
			lose(f)
			a := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", object{"jobs": []object{
				{"payload": "plain", "id": "x", "delay_ms": 60_000},
				{"payload": "durable", "id": "x", "delay_ms": 60_000, "durability": "dynamodb"},
			}})
			results, _ := a.Body["results"].([]any)
			require.Equal(t, true, results[0].(object)["duplicate"])
			require.Equal(t, true, results[0].(object)["payload_differs"])
			require.Equal(t, false, results[1].(object)["duplicate"])
			item := f.inOutbox(t)["x"]
			require.True(t, item.Durable)
			require.JSONEq(t, `"durable"`, string(item.Job.Payload))
		})
	}
}

func TestInABatchEachStoreThatIsAwayFailsOnlyTheJobsThatNeedIt(t *testing.T) {
	results := func(t *testing.T, f *fixture) []any {
		list, _ := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", mixedBatch(4)).Body["results"].([]any)
		require.Len(t, list, 4)
		return list
	}
	t.Run("dynamodb", func(t *testing.T) {
		f := start(t)
		f.loseDynamoDB()
		for i, result := range results(t, f) {
			if i%2 == 1 {
				apitest.RequireProblem(t, result.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
				continue
			}
			require.Equal(t, "scheduled", result.(object)["state"])
		}
	})
	t.Run("both", func(t *testing.T) {
		f := start(t)
		f.loseDynamoDB()
		require.NoError(t, f.redis.Server.Kill())
		for _, result := range results(t, f) {
			apitest.RequireProblem(t, result.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
		}
	})
}

// A panic in a goroutine of its own would end the function's process, and every other request in
// it.
func TestADefectInEitherHalfOfABatchIsA500(t *testing.T) {
	f := start(t)
	boom := func() { panic("boom") }
	for name, halves := range map[string][2]func(){"first": {boom, func() {}}, "second": {func() {}, boom},
		"both": {boom, boom}} {
		require.Panics(t, func() { both(halves[0], halves[1]) }, name)
	}
	f.queues = nil // whatever is asked of it panics
	a := f.Want(t, http.StatusInternalServerError, http.MethodPost, jobs+"/batch", mixedBatch(2))
	require.Equal(t, "internal", a.Body["code"])
	for _, secret := range []string{"nil pointer", "goroutine", "take.go"} {
		require.NotContains(t, a.Text, secret)
	}
	require.Contains(t, f.Log.String(), "take.go", "the log has the stack of where it was")
}
