package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
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
	call func(testing.TB, *fixture) reply) {
	t.Helper()
	var took time.Duration
	for range 5 {
		f := begin(t)
		lose(t, f.redis)
		began := time.Now()
		a := call(t, f)
		took = time.Since(began)
		require.Equal(t, "enqueue-outbox", a.header.Get("Sluice-Degraded"))
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
	one := func(t testing.TB, f *fixture) reply {
		return f.want(t, http.StatusAccepted, http.MethodPost, jobs, object{"payload": 1})
	}
	many := func(t testing.TB, f *fixture) reply {
		return f.want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(50))
	}
	mixed := func(t testing.TB, f *fixture) reply {
		return f.want(t, http.StatusOK, http.MethodPost, jobs+"/batch",
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

			a := f.want(t, http.StatusAccepted, http.MethodPost, jobs,
				object{"payload": object{"n": 1}, "id": "job", "delay_ms": 60_000})
			require.Equal(t, "enqueue-outbox", a.header.Get("Sluice-Degraded"))
			require.Equal(t, false, a.body["duplicate"])
			require.Equal(t, "scheduled", a.body["state"])
			b := f.want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(100))
			require.Equal(t, "enqueue-outbox", b.header.Get("Sluice-Degraded"))
			want := map[string]bool{"job": true}
			for _, r := range b.body["results"].([]any) {
				id, _ := r.(object)["id"].(string)
				require.NotEmpty(t, id, "%v", r)
				want[id] = true
			}

			again := f.want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": object{"n": 1}, "id": "job"})
			require.Equal(t, true, again.body["duplicate"])
			require.Equal(t, a.body["run_at"], again.body["run_at"])
			other := f.want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": "another", "id": "job"})
			require.Equal(t, true, other.body["payload_differs"])

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
	a := f.want(t, http.StatusOK, http.MethodPost, jobs+"/batch",
		object{"jobs": []object{{"payload": 1}, {"payload": 2, "durability": "dynamodb"}, {}}})
	results, _ := a.body["results"].([]any)
	require.Equal(t, "scheduled", results[0].(object)["state"])
	require.Equal(t, "scheduled", results[1].(object)["state"])
	requireProblem(t, results[2].(object)["error"], http.StatusBadRequest, "invalid_request")
}

func TestWithBothStoresAwayNothingIsTakenAndTheCallerIsToldWhenToAskAgain(t *testing.T) {
	f := start(t)
	f.loseDynamoDB()
	require.NoError(t, f.redis.Server.Stop())
	for name, job := range map[string]object{"plain": {"payload": 1, "id": "p"},
		"durable": {"payload": 1, "id": "d", "durability": "dynamodb"}} {
		a := f.want(t, http.StatusServiceUnavailable, http.MethodPost, jobs, job)
		require.Equal(t, "store_unavailable", a.body["code"], name)
		require.NotEmpty(t, a.header.Get("Retry-After"), name)
		require.Empty(t, a.header.Get("Sluice-Degraded"), name)
		for _, secret := range []string{"127.0.0.1", "dial", "dynamodb.", "redis:"} {
			require.NotContains(t, strings.ToLower(a.text), secret, "nothing internal is told")
		}
	}
	b := f.want(t, http.StatusOK, http.MethodPost, jobs+"/batch", batch(3))
	for _, r := range b.body["results"].([]any) {
		requireProblem(t, r.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
	}
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.send(t, http.MethodGet, jobs, nil).status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)
	require.Empty(t, f.want(t, http.StatusOK, http.MethodGet, jobs, nil).body["jobs"])
}

func TestWithDynamoDBAwayPlainJobsGoOnAndDurableOnesAreRefused(t *testing.T) {
	f := start(t)
	f.loseDynamoDB()
	a := f.post(t, jobs, object{"payload": 1})
	require.Empty(t, a.header.Get("Sluice-Degraded"))
	f.want(t, http.StatusServiceUnavailable, http.MethodPost, jobs,
		object{"payload": 1, "id": "d", "durability": "dynamodb"})
	f.want(t, http.StatusNotFound, http.MethodGet, jobs+"/d", nil)
	q := f.want(t, http.StatusOK, http.MethodGet, "/v1/queues/orders", nil)
	require.Nil(t, q.body["outbox"], "nobody knows")
	require.EqualValues(t, 1, q.body["scheduled"].(float64)+q.body["due"].(float64))
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
		a := f.want(t, http.StatusServiceUnavailable, c.method, c.target, c.body)
		require.Equal(t, "store_unavailable", a.body["code"])
		require.NotEmpty(t, a.header.Get("Retry-After"))
	}
}

func TestADurableJobIsWrittenToDynamoDBBeforeRedis(t *testing.T) {
	f := start(t)
	a := f.post(t, jobs, object{"payload": object{"n": 1}, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	require.Empty(t, a.header.Get("Sluice-Degraded"))
	item := f.inOutbox(t)["d"]
	require.True(t, item.Durable)
	require.JSONEq(t, `{"n":1}`, string(item.Job.Payload))
	info, err := f.queues.Get(t.Context(), "orders", "d")
	require.NoError(t, err)
	require.True(t, info.Durable)
	require.Equal(t, item.Job.RunAtMS, info.RunAtMS, "one due time in both")

	require.NoError(t, f.redis.Server.Kill())
	a = f.want(t, http.StatusAccepted, http.MethodPost, jobs,
		object{"payload": 2, "id": "e", "delay_ms": 60_000, "durability": "dynamodb"})
	require.Equal(t, "enqueue-outbox", a.header.Get("Sluice-Degraded"))
	require.Contains(t, f.inOutbox(t), "e")
}

func TestCancelAndChangeOfADurableJobReachTheOutbox(t *testing.T) {
	f := start(t)
	for _, id := range []string{"canceled", "moved", "filled"} {
		f.post(t, jobs, object{"payload": 1, "id": id, "delay_ms": 60_000, "durability": "dynamodb"})
	}
	f.want(t, http.StatusOK, http.MethodDelete, jobs+"/canceled", nil)
	moved := f.want(t, http.StatusOK, http.MethodPatch, jobs+"/moved", object{"delay_ms": 5_000_000})
	f.want(t, http.StatusOK, http.MethodPatch, jobs+"/filled", object{"payload": object{"n": 2}})
	there := f.inOutbox(t)
	require.NotContains(t, there, "canceled", "an outage would send it")
	info, err := f.queues.Get(t.Context(), "orders", "moved")
	require.NoError(t, err)
	require.Equal(t, info.RunAtMS, there["moved"].Job.RunAtMS)
	require.NotEmpty(t, moved.body["run_at"])
	require.JSONEq(t, `{"n":2}`, string(there["filled"].Job.Payload))
}

func TestACancelThatCannotReachTheOutboxIsNotCalledDone(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 1, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	box := f.outbox
	f.loseDynamoDB()
	f.want(t, http.StatusServiceUnavailable, http.MethodDelete, jobs+"/d", nil)
	f.outbox = box
	f.want(t, http.StatusOK, http.MethodDelete, jobs+"/d", nil)
	require.NotContains(t, f.inOutbox(t), "d")
}

func TestADurableIDThatTheOutboxKnowsKeepsItsContentInBothStores(t *testing.T) {
	f := start(t)
	require.NoError(t, f.redis.Server.Kill())
	f.want(t, http.StatusAccepted, http.MethodPost, jobs,
		object{"payload": "first", "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.send(t, http.MethodGet, jobs, nil).status == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)

	a := f.want(t, http.StatusOK, http.MethodPost, jobs,
		object{"payload": "second", "id": "d", "durability": "dynamodb"})
	require.Equal(t, true, a.body["duplicate"])
	require.Equal(t, true, a.body["payload_differs"])
	require.JSONEq(t, `"first"`, string(f.inOutbox(t)["d"].Job.Payload))
	// the dispatcher brings it there
	if shown := f.send(t, http.MethodGet, jobs+"/d", nil); shown.status != http.StatusNotFound {
		require.Equal(t, "first", shown.body["payload"])
	}
}

func TestAnIDThatRedisKnowsLeavesNothingInTheOutbox(t *testing.T) {
	f := start(t)
	f.post(t, jobs, object{"payload": 1, "id": "sent"})
	f.deliver(t, 1)
	f.post(t, jobs, object{"payload": 1, "id": "waits", "delay_ms": 60_000})
	f.post(t, jobs, object{"payload": 1, "id": "durable", "delay_ms": 60_000, "durability": "dynamodb"})
	for _, id := range []string{"sent", "waits", "durable"} {
		a := f.want(t, http.StatusOK, http.MethodPost, jobs, object{"payload": 1, "id": id, "durability": "dynamodb"})
		require.Equal(t, true, a.body["duplicate"])
	}
	there := f.inOutbox(t)
	require.NotContains(t, there, "sent", "an outage would send it again")
	require.NotContains(t, there, "waits", "a cancel would not reach it")
	require.Contains(t, there, "durable")
}

func TestJobsAreTakenInByRedisAgainOnceItIsBack(t *testing.T) {
	f := start(t)
	require.NoError(t, f.redis.Server.Kill())
	f.want(t, http.StatusAccepted, http.MethodPost, jobs, object{"payload": 1})
	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.want(t, http.StatusAccepted, http.MethodPost, jobs,
			object{"payload": 1}).header.Get("Sluice-Degraded") == ""
	}, 10*time.Second, 20*time.Millisecond)
}
