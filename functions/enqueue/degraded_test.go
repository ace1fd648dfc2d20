package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

// enqueueLimit is how long an enqueue may take while Redis is away.
const enqueueLimit = 800 * time.Millisecond

// outages are the ways in which Redis is away. Each must still be a reason to take jobs in.
func outages() map[string]func(testing.TB, *redistest.Redis) {
	return map[string]func(testing.TB, *redistest.Redis){
		"is gone": func(t testing.TB, r *redistest.Redis) { require.NoError(t, r.Server.Kill()) },
		"hangs":   func(t testing.TB, r *redistest.Redis) { require.NoError(t, r.Server.Pause()) },
		"is full": func(t testing.TB, r *redistest.Redis) {
			require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
		},
		"is a replica of nobody": func(t testing.TB, r *redistest.Redis) {
			require.NoError(t, r.Client.SlaveOf(t.Context(), "127.0.0.1", "1").Err())
		},
	}
}

// inTime demands of the first call in an outage that it is answered in time. Later calls are no
// measure: they know that Redis is away. A loaded machine may need another function and another
// outage; a wait for Redis would be as long each time.
func inTime(t *testing.T, begin func(testing.TB) *fixture, lose func(testing.TB, *redistest.Redis),
	call func(testing.TB, *fixture) apitest.Reply) {
	t.Helper()
	var took time.Duration
	for range 5 {
		f := begin(t)
		lose(t, f.redis)
		began := time.Now()
		a := call(t, f)
		took = time.Since(began)
		require.Equal(t, "enqueue-outbox", a.Header.Get("Sluice-Degraded"))
		if took < enqueueLimit {
			t.Logf("answered in %v", took)
			return
		}
	}
	require.Less(t, took, enqueueLimit)
}

func TestAnEnqueueIsAnsweredInTimeWhileRedisIsAway(t *testing.T) {
	warm := func(t testing.TB) *fixture {
		f := wire(t, redistest.Single(t), redisTimeout)
		f.post(t, jobs, object{"payload": 1})
		return f
	}
	cold := func(t testing.TB) *fixture { return wire(t, redistest.Single(t), redisTimeout) }
	one := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusAccepted, http.MethodPost, jobs, object{"payload": 1})
	}
	many := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(50))
	}
	mixed := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch",
			object{"jobs": []object{{"payload": 1}, {"payload": 2, "durability": "dynamodb"}}})
	}
	for name, lose := range outages() {
		t.Run("a job, redis "+name, func(t *testing.T) { inTime(t, warm, lose, one) })
		t.Run("a batch, redis "+name, func(t *testing.T) { inTime(t, warm, lose, many) })
		t.Run("a batch of plain and durable jobs, redis "+name, func(t *testing.T) { inTime(t, warm, lose, mixed) })
		t.Run("a function that starts, redis "+name, func(t *testing.T) { inTime(t, cold, lose, one) })
	}
}

func TestWhileRedisIsAwayJobsAreTakenInByTheOutbox(t *testing.T) {
	for name, lose := range outages() {
		t.Run("redis "+name, func(t *testing.T) {
			f := wire(t, redistest.Single(t), redisTimeout)
			f.post(t, jobs, object{"payload": 1, "id": "before"}) // the function is warm
			lose(t, f.redis)

			a := f.Want(t, http.StatusAccepted, http.MethodPost, jobs,
				object{"payload": object{"n": 1}, "id": "job", "delay_ms": 60_000})
			require.Equal(t, "enqueue-outbox", a.Header.Get("Sluice-Degraded"))
			require.Equal(t, false, a.Body["duplicate"])
			require.Equal(t, "scheduled", a.Body["state"])
			b := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(100))
			require.Equal(t, "enqueue-outbox", b.Header.Get("Sluice-Degraded"))
			want := map[string]bool{"job": true}
			for _, r := range b.Body["results"].([]any) {
				id, _ := r.(object)["id"].(string)
				require.NotEmpty(t, id, "%v", r)
				want[id] = true
			}

			again := f.Want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": object{"n": 1}, "id": "job"})
			require.Equal(t, true, again.Body["duplicate"])
			require.Equal(t, a.Body["run_at"], again.Body["run_at"])
			other := f.Want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": "another", "id": "job"})
			require.Equal(t, true, other.Body["payload_differs"])

			there := f.inOutbox(t)
			for id := range want {
				require.Contains(t, there, id, "it was promised")
				require.False(t, there[id].Durable)
			}
		})
	}
}

func TestEachJobOfABatchIsForItselfWhileRedisIsAway(t *testing.T) {
	f := start(t)
	require.NoError(t, f.redis.Server.Kill())
	a := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch",
		object{"jobs": []object{{"payload": 1}, {"payload": 2, "durability": "dynamodb"}, {}}})
	results, _ := a.Body["results"].([]any)
	require.Equal(t, "scheduled", results[0].(object)["state"])
	require.Equal(t, "scheduled", results[1].(object)["state"])
	apitest.RequireProblem(t, results[2].(object)["error"], http.StatusBadRequest, "invalid_request")
}

func TestWithBothStoresAwayNothingIsTakenAndTheCallerIsToldWhenToAskAgain(t *testing.T) {
	f := start(t)
	f.loseDynamoDB()
	require.NoError(t, f.redis.Server.Stop())
	for name, job := range map[string]object{"plain": {"payload": 1, "id": "p"},
		"durable": {"payload": 1, "id": "d", "durability": "dynamodb"}} {
		a := f.Want(t, http.StatusServiceUnavailable, http.MethodPost, jobs, job)
		require.Equal(t, "store_unavailable", a.Body["code"], name)
		require.NotEmpty(t, a.Header.Get("Retry-After"), name)
		require.Empty(t, a.Header.Get("Sluice-Degraded"), name)
		for _, secret := range []string{"127.0.0.1", "dial", "dynamodb.", "redis:"} {
			require.NotContains(t, strings.ToLower(a.Text), secret, "nothing internal is told")
		}
	}
	b := f.Want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(3))
	for _, r := range b.Body["results"].([]any) {
		apitest.RequireProblem(t, r.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
	}
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.Send(t, http.MethodGet, jobs, nil).Status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)
	require.Empty(t, f.Want(t, http.StatusOK, http.MethodGet, jobs, nil).Body["jobs"])
}

func TestWithDynamoDBAwayPlainJobsGoOnAndDurableOnesAreRefused(t *testing.T) {
	f := start(t)
	f.loseDynamoDB()
	a := f.post(t, jobs, object{"payload": 1})
	require.Empty(t, a.Header.Get("Sluice-Degraded"))
	f.Want(t, http.StatusServiceUnavailable, http.MethodPost, jobs,
		object{"payload": 1, "id": "d", "durability": "dynamodb"})
	f.Want(t, http.StatusNotFound, http.MethodGet, jobs+"/d", nil)
	q := f.Want(t, http.StatusOK, http.MethodGet, "/v1/queues/orders", nil)
	require.Nil(t, q.Body["outbox"], "nobody knows")
	require.EqualValues(t, 1, q.Body["scheduled"].(float64)+q.Body["due"].(float64))
}

func TestEverythingElseIsUnavailableWhileRedisIsAway(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 1, "id": "a", "delay_ms": 60_000})
	require.NoError(t, f.redis.Server.Kill())
	for _, c := range []struct {
		method, target string
		body           any
	}{
		{http.MethodGet, jobs, nil}, {http.MethodGet, jobs + "/a", nil}, {http.MethodDelete, jobs + "/a", nil},
		{http.MethodPatch, jobs + "/a", object{"delay_ms": 1}},
		{http.MethodPost, jobs + "/a/ack", object{"attempt": 1}},
		{http.MethodPost, jobs + "/a/nack", object{"attempt": 1}}, {http.MethodGet, "/v1/queues", nil},
		{http.MethodGet, "/v1/queues/orders", nil},
		{http.MethodPost, "/v1/queues/orders/pause", nil}, {http.MethodPost, "/v1/queues/orders/resume", nil},
		{http.MethodPost, "/v1/queues/orders/redrive", nil},
	} {
		a := f.Want(t, http.StatusServiceUnavailable, c.method, c.target, c.body)
		require.Equal(t, "store_unavailable", a.Body["code"])
		require.NotEmpty(t, a.Header.Get("Retry-After"))
	}
}

func TestADurableJobIsWrittenToDynamoDBBeforeRedis(t *testing.T) {
	f := start(t)
	a := f.post(t, jobs, object{"payload": object{"n": 1}, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	require.Empty(t, a.Header.Get("Sluice-Degraded"))
	item := f.inOutbox(t)["d"]
	require.True(t, item.Durable)
	require.JSONEq(t, `{"n":1}`, string(item.Job.Payload))
	info, err := f.queues.Get(t.Context(), "orders", "d")
	require.NoError(t, err)
	require.True(t, info.Durable)
	require.Equal(t, item.Job.RunAt, info.RunAt, "one due time in both")

	require.NoError(t, f.redis.Server.Kill())
	a = f.Want(t, http.StatusAccepted, http.MethodPost, jobs,
		object{"payload": 2, "id": "e", "delay_ms": 60_000, "durability": "dynamodb"})
	require.Equal(t, "enqueue-outbox", a.Header.Get("Sluice-Degraded"))
	require.Contains(t, f.inOutbox(t), "e")
}

func TestCancelAndChangeOfADurableJobReachTheOutbox(t *testing.T) {
	f := start(t)
	for _, id := range []string{"canceled", "moved", "filled"} {
		f.post(t, jobs, object{"payload": 1, "id": id, "delay_ms": 60_000, "durability": "dynamodb"})
	}
	f.Want(t, http.StatusOK, http.MethodDelete, jobs+"/canceled", nil)
	moved := f.Want(t, http.StatusOK, http.MethodPatch, jobs+"/moved", object{"delay_ms": 5_000_000})
	f.Want(t, http.StatusOK, http.MethodPatch, jobs+"/filled", object{"payload": object{"n": 2}})
	there := f.inOutbox(t)
	require.NotContains(t, there, "canceled", "an outage would send it")
	info, err := f.queues.Get(t.Context(), "orders", "moved")
	require.NoError(t, err)
	require.Equal(t, info.RunAt, there["moved"].Job.RunAt)
	require.NotEmpty(t, moved.Body["run_at"])
	require.JSONEq(t, `{"n":2}`, string(there["filled"].Job.Payload))
}

func TestACancelThatCannotReachTheOutboxIsNotCalledDone(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 1, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	box := f.outbox
	f.loseDynamoDB()
	f.Want(t, http.StatusServiceUnavailable, http.MethodDelete, jobs+"/d", nil)
	f.outbox = box
	f.Want(t, http.StatusOK, http.MethodDelete, jobs+"/d", nil)
	require.NotContains(t, f.inOutbox(t), "d")
}

func TestADurableIDThatTheOutboxKnowsKeepsItsContentInBothStores(t *testing.T) {
	f := start(t)
	require.NoError(t, f.redis.Server.Kill())
	f.Want(t, http.StatusAccepted, http.MethodPost, jobs,
		object{"payload": "first", "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.Send(t, http.MethodGet, jobs, nil).Status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)

	a := f.Want(t, http.StatusOK, http.MethodPost, jobs,
		object{"payload": "second", "id": "d", "durability": "dynamodb"})
	require.Equal(t, true, a.Body["duplicate"])
	require.Equal(t, true, a.Body["payload_differs"])
	require.JSONEq(t, `"first"`, string(f.inOutbox(t)["d"].Job.Payload))
	// the dispatcher brings it there
	if shown := f.Send(t, http.MethodGet, jobs+"/d", nil); shown.Status != http.StatusNotFound {
		require.Equal(t, "first", shown.Body["payload"])
	}
}

func TestAnIDThatRedisKnowsLeavesNothingInTheOutbox(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 1, "id": "sent"})
	f.deliver(t, 1)
	f.post(t, jobs, object{"payload": 1, "id": "waits", "delay_ms": 60_000})
	f.post(t, jobs, object{"payload": 1, "id": "durable", "delay_ms": 60_000, "durability": "dynamodb"})
	for _, id := range []string{"sent", "waits", "durable"} {
		a := f.Want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": 1, "id": id, "durability": "dynamodb"})
		require.Equal(t, true, a.Body["duplicate"])
	}
	there := f.inOutbox(t)
	require.NotContains(t, there, "sent", "an outage would send it again")
	require.NotContains(t, there, "waits", "a cancel would not reach it")
	require.Contains(t, there, "durable")
}

func TestJobsAreTakenInByRedisAgainOnceItIsBack(t *testing.T) {
	f := start(t)
	require.NoError(t, f.redis.Server.Kill())
	f.Want(t, http.StatusAccepted, http.MethodPost, jobs, object{"payload": 1})
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.Want(t, http.StatusAccepted, http.MethodPost, jobs,
			object{"payload": 1}).Header.Get("Sluice-Degraded") == ""
	}, 10*time.Second, 20*time.Millisecond)
}
