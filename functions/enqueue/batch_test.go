package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/jobs"
)

// hanging simulates a Redis that does not answer. When a given number of calls are waiting, they
// all time out at the same moment, so that the test does not depend on a clock.
type hanging struct {
	together int32
	calls    atomic.Int32
	alone    atomic.Int32  // number of calls that reached their own timeout
	timeout  chan struct{} // closed when the calls time out
}

// hang makes the function's Redis hang. The argument together is the number of waiting calls at
// which all of them time out.
func (f *fixture) hang(together int32) *hanging {
	h := &hanging{together: together, timeout: make(chan struct{})}
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
		close(h.timeout)
	}
	select {
	case <-h.timeout:
	case <-ctx.Done():
		h.alone.Add(1)
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// batch returns a batch of n plain jobs.
func batch(n int) object {
	list := make([]object, n)
	for i := range list {
		list[i] = object{"payload": i, "delay_ms": 60_000}
	}
	return object{"jobs": list}
}

// mixedBatch returns a batch of n jobs, alternately plain and durable: p0, d1, p2, d3, …
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

func TestBatch(t *testing.T) {
	t.Run("has at most 500 jobs", func(t *testing.T) {
		f := start(t)
		results, _ := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch",
			batch(delayqueue.MaxBatch)).Body["results"].([]any)
		require.Len(t, results, delayqueue.MaxBatch)
		seen := map[any]bool{}
		for _, r := range results {
			require.Equal(t, "scheduled", r.(object)["state"])
			seen[r.(object)["id"]] = true
		}
		require.Len(t, seen, delayqueue.MaxBatch)
		scheduled := func() any {
			return f.Want(t, http.StatusOK, http.MethodGet, "/v1/queues/orders", nil).Body["scheduled"]
		}
		require.EqualValues(t, delayqueue.MaxBatch, scheduled())

		for _, body := range []object{batch(delayqueue.MaxBatch + 1), batch(0), {}} {
			require.Equal(t, []string{"jobs"}, apitest.InvalidFields(t,
				f.Want(t, http.StatusBadRequest, http.MethodPost, jobsPath+"/batch", body).Body))
		}
		require.EqualValues(t, delayqueue.MaxBatch, scheduled())
	})

	t.Run("an invalid job does not affect the other jobs", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "known"})
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", object{"jobs": []object{
			{"payload": 1, "id": "a"},
			{"payload": 1, "id": "b", "delay_ms": -1},
			{"payload": strings.Repeat("x", delayqueue.MaxPayload), "id": "c"},
			{"payload": 2, "id": "known"},
			{"id": "d"},
			{"payload": 1, "id": "e", "durability": "dynamodb"},
			{"payload": 1, "id": "a"},
		}})
		results, _ := a.Body["results"].([]any)
		require.Len(t, results, 7)
		require.Equal(t, "a", results[0].(object)["id"])
		apitest.RequireProblem(t, results[1].(object)["error"], http.StatusBadRequest, "invalid_request")
		apitest.RequireProblem(t, results[2].(object)["error"], http.StatusRequestEntityTooLarge, "payload_too_large")
		require.Equal(t, true, results[3].(object)["duplicate"])
		require.Equal(t, true, results[3].(object)["payload_differs"])
		apitest.RequireProblem(t, results[4].(object)["error"], http.StatusBadRequest, "invalid_request")
		require.Equal(t, false, results[5].(object)["duplicate"])
		require.Equal(t, true, results[6].(object)["duplicate"], "two entries with the same ID are one job")
		require.Empty(t, a.Header.Get("Sluice-Degraded"))

		all := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch",
			object{"jobs": []object{{"id": "x y", "payload": 1}, {}}})
		for _, r := range all.Body["results"].([]any) {
			apitest.RequireProblem(t, r.(object)["error"], http.StatusBadRequest, "invalid_request")
		}
		f.Want(t, http.StatusBadRequest, http.MethodPost, jobsPath+"/batch",
			`{"jobs":[{"payload":1},{"payload":1,"delay":1}]}`)
	})

	t.Run("a panic is answered with 500 and only the log has its stack", func(t *testing.T) {
		f := start(t)
		f.jobs = jobs.New(nil, f.outbox, f.log) // every call to Redis panics
		a := f.WantProblem(t, http.StatusInternalServerError, "internal", http.MethodPost, jobsPath+"/batch",
			mixedBatch(2))
		for _, secret := range []string{"nil pointer", "goroutine", "enqueue.go"} {
			require.NotContains(t, a.Text, secret)
		}
		require.Contains(t, f.Log.String(), "enqueue.go")
	})
}

func TestBatchOfPlainAndDurableJobs(t *testing.T) {
	// If plain and durable jobs waited one after the other, the first call would reach its own
	// timeout.
	t.Run("waits only once for a Redis that hangs", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": "opens the connection"})
		h := f.hang(2)
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", mixedBatch(6))
		require.Zero(t, h.alone.Load(), "plain and durable jobs wait concurrently")
		require.EqualValues(t, 2, h.calls.Load(), "Redis is not called again")
		require.Equal(t, degradedOutbox, a.Header.Get("Sluice-Degraded"))
		results, _ := a.Body["results"].([]any)
		require.Len(t, results, 6)
		for i, result := range results {
			id := fmt.Sprintf("%c%d", "pd"[i%2], i)
			require.Equal(t, id, result.(object)["id"], "results are in the order of the request")
			require.Equal(t, "scheduled", result.(object)["state"])
			item := f.item(t, id)
			require.Equal(t, i%2 == 1, item.Durable)
			require.Equal(t, fmt.Sprint(i), string(item.Job.Payload))
		}
	})

	t.Run("returns the results in the order of the request", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 4, "id": "p4", "delay_ms": 60_000})
		f.post(t, jobsPath, object{"payload": "another", "id": "d7", "delay_ms": 60_000, "durability": "dynamodb"})
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", mixedBatch(60))
		require.Empty(t, a.Header.Get("Sluice-Degraded"))
		results, _ := a.Body["results"].([]any)
		require.Len(t, results, 60)
		for i, result := range results {
			id := fmt.Sprintf("%c%d", "pd"[i%2], i)
			require.Equal(t, id, result.(object)["id"])
			require.Equal(t, i == 4 || i == 7, result.(object)["duplicate"], id)
			require.Equal(t, i == 7, result.(object)["payload_differs"] == true, id)
			info, err := f.queues.Get(t.Context(), "orders", id)
			require.NoError(t, err)
			require.Equal(t, i%2 == 1, info.Durable)
			require.Equal(t, i%2 == 1, f.item(t, id) != nil, "only durable jobs are in the outbox")
		}
	})

	for name, lose := range map[string]func(*fixture){
		"with Redis":    func(*fixture) {},
		"without Redis": func(f *fixture) { f.hang(1) },
	} {
		t.Run(name+": if a plain and a durable job share an ID, the durable job is stored", func(t *testing.T) {
			f := start(t)
			f.post(t, jobsPath, object{"payload": 1})
			lose(f)
			a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", object{"jobs": []object{
				{"payload": "plain", "id": "x", "delay_ms": 60_000},
				{"payload": "durable", "id": "x", "delay_ms": 60_000, "durability": "dynamodb"},
			}})
			results, _ := a.Body["results"].([]any)
			require.Equal(t, true, results[0].(object)["duplicate"])
			require.Equal(t, true, results[0].(object)["payload_differs"])
			require.Equal(t, false, results[1].(object)["duplicate"])
			item := f.item(t, "x")
			require.True(t, item.Durable)
			require.JSONEq(t, `"durable"`, string(item.Job.Payload))
		})
	}

	results := func(t *testing.T, f *fixture) []any {
		list, _ := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", mixedBatch(4)).Body["results"].([]any)
		require.Len(t, list, 4)
		return list
	}
	t.Run("without DynamoDB: only the durable jobs fail", func(t *testing.T) {
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
	t.Run("without both stores: all jobs fail", func(t *testing.T) {
		f := start(t)
		f.loseDynamoDB()
		require.NoError(t, f.redis.Server.Kill())
		for _, result := range results(t, f) {
			apitest.RequireProblem(t, result.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
		}
	})
}
