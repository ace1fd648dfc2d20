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

// enqueueLimit is the maximum duration of an enqueue while Redis is unavailable.
const enqueueLimit = 800 * time.Millisecond

// outages returns functions that make Redis unavailable, each in a different way. Jobs must be
// accepted in each outage.
func outages() map[string]func(testing.TB, *redistest.Redis) {
	return map[string]func(testing.TB, *redistest.Redis){
		"redis was killed": func(t testing.TB, r *redistest.Redis) { require.NoError(t, r.Server.Kill()) },
		"redis hangs":      func(t testing.TB, r *redistest.Redis) { require.NoError(t, r.Server.Pause()) },
		"redis is full": func(t testing.TB, r *redistest.Redis) {
			require.NoError(t, r.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
		},
		"redis is a replica": func(t testing.TB, r *redistest.Redis) {
			require.NoError(t, r.Client.SlaveOf(t.Context(), "127.0.0.1", "1").Err())
		},
	}
}

// requireInTime requires that the first call in an outage is answered within enqueueLimit. Later
// calls are quicker, because the circuit breaker is open. It makes up to five tries, each with a
// new function and a new outage, because a call may be slow on a loaded machine. A call that waited
// for Redis would be late in every try.
func requireInTime(t *testing.T, begin func(testing.TB) *fixture, lose func(testing.TB, *redistest.Redis),
	call func(testing.TB, *fixture) apitest.Reply) {
	t.Helper()
	var took time.Duration
	for range 5 {
		f := begin(t)
		lose(t, f.redis)
		began := time.Now()
		a := call(t, f)
		took = time.Since(began)
		require.Equal(t, degradedOutbox, a.Header.Get("Sluice-Degraded"))
		if took < enqueueLimit {
			t.Logf("answered in %v", took)
			return
		}
	}
	require.Less(t, took, enqueueLimit)
}

func TestEnqueueInTime(t *testing.T) {
	warm := func(t testing.TB) *fixture {
		f := wire(t, redistest.Single(t), redisTimeout)
		f.post(t, jobsPath, object{"payload": 1})
		return f
	}
	cold := func(t testing.TB) *fixture { return wire(t, redistest.Single(t), redisTimeout) }
	one := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath, object{"payload": 1})
	}
	many := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", batch(50))
	}
	mixed := func(t testing.TB, f *fixture) apitest.Reply {
		return f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch",
			object{"jobs": []object{{"payload": 1}, {"payload": 2, "durability": "dynamodb"}}})
	}
	for name, lose := range outages() {
		t.Run(name+": one job", func(t *testing.T) { requireInTime(t, warm, lose, one) })
		t.Run(name+": a batch", func(t *testing.T) { requireInTime(t, warm, lose, many) })
		t.Run(name+": a batch of plain and durable jobs", func(t *testing.T) { requireInTime(t, warm, lose, mixed) })
		t.Run(name+": the first call of a process", func(t *testing.T) { requireInTime(t, cold, lose, one) })
	}
}

func TestEnqueueWithoutRedis(t *testing.T) {
	for name, lose := range outages() {
		t.Run(name+": the outbox accepts jobs", func(t *testing.T) {
			f := wire(t, redistest.Single(t), redisTimeout)
			f.post(t, jobsPath, object{"payload": 1, "id": "before"}) // opens the connection
			lose(t, f.redis)

			a := f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath,
				object{"payload": object{"n": 1}, "id": "job", "delay_ms": 60_000})
			require.Equal(t, degradedOutbox, a.Header.Get("Sluice-Degraded"))
			require.Equal(t, false, a.Body["duplicate"])
			require.Equal(t, "scheduled", a.Body["state"])
			b := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", batch(100))
			require.Equal(t, degradedOutbox, b.Header.Get("Sluice-Degraded"))
			accepted := []string{"job"}
			for _, r := range b.Body["results"].([]any) {
				id, _ := r.(object)["id"].(string)
				require.NotEmpty(t, id, "%v", r)
				accepted = append(accepted, id)
			}

			again := f.Want(t, http.StatusOK, http.MethodPost, jobsPath, object{"payload": object{"n": 1}, "id": "job"})
			require.Equal(t, true, again.Body["duplicate"])
			require.Equal(t, a.Body["run_at"], again.Body["run_at"])
			other := f.Want(t, http.StatusOK, http.MethodPost, jobsPath, object{"payload": "different", "id": "job"})
			require.Equal(t, true, other.Body["payload_differs"])

			for _, id := range accepted {
				item := f.item(t, id)
				require.NotNil(t, item, "an accepted job must be in the outbox: %s", id)
				require.False(t, item.Durable)
			}
		})
	}

	t.Run("each job of a batch succeeds or fails independently", func(t *testing.T) {
		f := start(t)
		require.NoError(t, f.redis.Server.Kill())
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch",
			object{"jobs": []object{{"payload": 1}, {"payload": 2, "durability": "dynamodb"}, {}}})
		results, _ := a.Body["results"].([]any)
		require.Equal(t, "scheduled", results[0].(object)["state"])
		require.Equal(t, "scheduled", results[1].(object)["state"])
		apitest.RequireProblem(t, results[2].(object)["error"], http.StatusBadRequest, "invalid_request")
	})

	t.Run("Redis accepts jobs again after its restart", func(t *testing.T) {
		f := start(t)
		require.NoError(t, f.redis.Server.Kill())
		f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath, object{"payload": 1})
		require.NoError(t, f.redis.Server.Restart(t.Context()))
		require.Eventually(t, func() bool {
			return f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath,
				object{"payload": 1}).Header.Get("Sluice-Degraded") == ""
		}, 10*time.Second, 20*time.Millisecond)
	})
}

func TestEnqueueWithoutDynamoDB(t *testing.T) {
	t.Run("with Redis: plain jobs are accepted, durable jobs are not", func(t *testing.T) {
		f := start(t)
		restore := f.loseDynamoDB()
		a := f.post(t, jobsPath, object{"payload": 1})
		require.Empty(t, a.Header.Get("Sluice-Degraded"))
		f.Want(t, http.StatusServiceUnavailable, http.MethodPost, jobsPath,
			object{"payload": 1, "id": "d", "durability": "dynamodb"})
		q := f.Want(t, http.StatusOK, http.MethodGet, "/v1/queues/orders", nil)
		require.Nil(t, q.Body["outbox"], "the number of jobs in the outbox is unknown")
		require.EqualValues(t, 1, q.Body["scheduled"].(float64)+q.Body["due"].(float64))

		f.WantProblem(t, http.StatusServiceUnavailable, "store_unavailable", http.MethodGet, jobsPath+"/d", nil)
		restore()
		f.WantProblem(t, http.StatusNotFound, "job_not_found", http.MethodGet, jobsPath+"/d", nil)
	})

	t.Run("without Redis: no job is accepted, and the answer has Retry-After", func(t *testing.T) {
		f := start(t)
		f.loseDynamoDB()
		require.NoError(t, f.redis.Server.Stop())
		for name, job := range map[string]object{"plain": {"payload": 1, "id": "p"},
			"durable": {"payload": 1, "id": "d", "durability": "dynamodb"}} {
			a := f.WantProblem(t, http.StatusServiceUnavailable, "store_unavailable", http.MethodPost, jobsPath, job)
			require.NotEmpty(t, a.Header.Get("Retry-After"), name)
			require.Empty(t, a.Header.Get("Sluice-Degraded"), name)
			for _, secret := range []string{"127.0.0.1", "dial", "dynamodb.", "redis:"} {
				require.NotContains(t, strings.ToLower(a.Text), secret, "the answer does not disclose internals")
			}
		}
		b := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/batch", batch(3))
		for _, r := range b.Body["results"].([]any) {
			apitest.RequireProblem(t, r.(object)["error"], http.StatusServiceUnavailable, "store_unavailable")
		}
		f.restartRedis(t)
		require.Empty(t, f.Want(t, http.StatusOK, http.MethodGet, jobsPath, nil).Body["jobs"])
	})
}

func TestOtherCallsWithoutRedis(t *testing.T) {
	f := start(t)
	f.post(t, jobsPath, object{"payload": 1, "id": "a", "delay_ms": 60_000})
	require.NoError(t, f.redis.Server.Kill())
	for _, c := range []struct {
		method, target string
		body           any
	}{
		{http.MethodGet, jobsPath, nil},
		{http.MethodGet, jobsPath + "/a", nil},
		{http.MethodDelete, jobsPath + "/a", nil},
		{http.MethodPatch, jobsPath + "/a", object{"delay_ms": 1}},
		{http.MethodPost, jobsPath + "/a/ack", object{"attempt": 1}},
		{http.MethodPost, jobsPath + "/a/nack", object{"attempt": 1}},
		{http.MethodGet, "/v1/queues", nil},
		{http.MethodGet, "/v1/queues/orders", nil},
		{http.MethodPost, "/v1/queues/orders/pause", nil},
		{http.MethodPost, "/v1/queues/orders/resume", nil},
		{http.MethodPost, "/v1/queues/orders/redrive", nil},
	} {
		t.Run(c.method+" "+c.target+" is store_unavailable", func(t *testing.T) {
			a := f.WantProblem(t, http.StatusServiceUnavailable, "store_unavailable", c.method, c.target, c.body)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
		})
	}
}

func TestDurableJob(t *testing.T) {
	t.Run("is written to DynamoDB before Redis", func(t *testing.T) {
		f := start(t)
		a := f.post(t, jobsPath,
			object{"payload": object{"n": 1}, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
		require.Empty(t, a.Header.Get("Sluice-Degraded"))
		item := f.item(t, "d")
		require.True(t, item.Durable)
		require.JSONEq(t, `{"n":1}`, string(item.Job.Payload))
		info, err := f.queues.Get(t.Context(), "orders", "d")
		require.NoError(t, err)
		require.True(t, info.Durable)
		require.Equal(t, item.Job.RunAt, info.RunAt, "both stores have the same due time")

		require.NoError(t, f.redis.Server.Kill())
		a = f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath,
			object{"payload": 2, "id": "e", "delay_ms": 60_000, "durability": "dynamodb"})
		require.Equal(t, degradedOutbox, a.Header.Get("Sluice-Degraded"))
		require.NotNil(t, f.item(t, "e"))
	})

	t.Run("is canceled and changed in both stores", func(t *testing.T) {
		f := start(t)
		for _, id := range []string{"canceled", "rescheduled", "refilled"} {
			f.post(t, jobsPath, object{"payload": 1, "id": id, "delay_ms": 60_000, "durability": "dynamodb"})
		}
		f.Want(t, http.StatusOK, http.MethodDelete, jobsPath+"/canceled", nil)
		a := f.Want(t, http.StatusOK, http.MethodPatch, jobsPath+"/rescheduled", object{"delay_ms": 5_000_000})
		f.Want(t, http.StatusOK, http.MethodPatch, jobsPath+"/refilled", object{"payload": object{"n": 2}})

		require.Nil(t, f.item(t, "canceled"), "a remaining item would be sent in an outage")
		info, err := f.queues.Get(t.Context(), "orders", "rescheduled")
		require.NoError(t, err)
		require.Equal(t, info.RunAt, f.item(t, "rescheduled").Job.RunAt)
		require.NotEmpty(t, a.Body["run_at"])
		require.JSONEq(t, `{"n":2}`, string(f.item(t, "refilled").Job.Payload))
	})

	t.Run("is not canceled while DynamoDB is unavailable", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
		restore := f.loseDynamoDB()
		f.Want(t, http.StatusServiceUnavailable, http.MethodDelete, jobsPath+"/d", nil)
		restore()
		f.Want(t, http.StatusOK, http.MethodDelete, jobsPath+"/d", nil)
		require.Nil(t, f.item(t, "d"))
	})

	t.Run("a job that is in the outbox keeps its payload in both stores", func(t *testing.T) {
		f := start(t)
		require.NoError(t, f.redis.Server.Kill())
		f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath,
			object{"payload": "first", "id": "d", "delay_ms": 60_000, "durability": "dynamodb"})
		f.restartRedis(t)

		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath,
			object{"payload": "second", "id": "d", "durability": "dynamodb"})
		require.Equal(t, true, a.Body["duplicate"])
		require.Equal(t, true, a.Body["payload_differs"])
		require.JSONEq(t, `"first"`, string(f.item(t, "d").Job.Payload))
		require.Equal(t, "first", f.Want(t, http.StatusOK, http.MethodGet, jobsPath+"/d", nil).Body["payload"])
	})

	t.Run("a duplicate of a job that only Redis has adds nothing to the outbox", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "sent"})
		f.deliver(t, 1)
		f.post(t, jobsPath, object{"payload": 1, "id": "waits", "delay_ms": 60_000})
		f.post(t, jobsPath, object{"payload": 1, "id": "durable", "delay_ms": 60_000, "durability": "dynamodb"})
		for _, id := range []string{"sent", "waits", "durable"} {
			a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath,
				object{"payload": 1, "id": id, "durability": "dynamodb"})
			require.Equal(t, true, a.Body["duplicate"])
		}
		require.Nil(t, f.item(t, "sent"), "an item of a sent job would be sent again in an outage")
		require.Nil(t, f.item(t, "waits"), "the existing job is not durable")
		require.NotNil(t, f.item(t, "durable"))
	})
}
