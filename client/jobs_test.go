package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestPush(t *testing.T) {
	t.Parallel()
	t.Run("sends every field of a job", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Sluice-Degraded", "enqueue-outbox")
			say(w, 202,
				`{"id":"order-42","queue":"orders","state":"scheduled","run_at":"2030-01-02T03:04:05.678Z",
				"attempt":0,"duplicate":false}`)
		})
		at := time.Date(2030, 1, 2, 3, 4, 5, 677_000_001, time.UTC)
		receipt, err := s.client(t, client.Config{}).Queue("orders").Push(t.Context(), client.Job{
			Payload:     map[string]string{"html": "<b>&"},
			RunAt:       at,
			ID:          "order-42",
			MaxAttempts: 3,
			AckTimeout:  time.Minute,
			Backoff:     &client.Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 3, NoJitter: true},
			ExpiresAt:   at.Add(time.Hour),
			Group:       "g",
			Headers:     map[string]string{"a": "b"},
			Durable:     true,
		})
		require.NoError(t, err)
		require.Equal(t, client.Receipt{
			ID: "order-42", Queue: "orders", State: client.JobScheduled,
			RunAt: time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC), Degraded: "enqueue-outbox",
		}, receipt)
		got := s.got()[0]
		require.Equal(t, "POST /v1/queues/orders/jobs", got.method+" "+got.path)
		require.Empty(t, got.header.Get("Idempotency-Key"), "the ID is in the body")
		require.Equal(t, map[string]any{
			"payload": map[string]any{"html": "<b>&"}, "run_at": "2030-01-02T03:04:05.678Z", "id": "order-42",
			"max_attempts": 3., "ack_timeout_ms": 60_000.,
			"expires_at": "2030-01-02T04:04:05.678Z",
			"backoff":    map[string]any{"initial_ms": 1000., "max_ms": 3_600_000., "multiplier": 3., "jitter": false},
			"group":      "g", "headers": map[string]any{"a": "b"}, "durability": "dynamodb",
		}, got.body, "times are rounded up, so that no job is early")
	})

	t.Run("retries with the same generated ID and reports no duplicate", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				cut(w)
			}
			say(w, 200,
				`{"id":"made","queue":"orders","state":"scheduled","run_at":"2030-01-02T03:04:05.678Z",
				"attempt":0,"duplicate":true}`)
		})
		receipt, err := s.client(t, client.Config{}).Queue("orders").Push(t.Context(),
			client.Job{Delay: 1500 * time.Microsecond})
		require.NoError(t, err)
		require.False(t, receipt.Duplicate)
		got := s.got()
		require.Len(t, got, 2)
		require.Equal(t, got[0].header.Get("Idempotency-Key"), got[1].header.Get("Idempotency-Key"))
		require.GreaterOrEqual(t, len(got[0].header.Get("Idempotency-Key")), 26)
		require.Equal(t, map[string]any{"payload": nil, "delay_ms": 2.}, got[0].body,
			"a delay is rounded up, so that no job is early")
	})

	t.Run("returns the ID for a retry", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { cut(w) })
		receipt, err := s.client(t, client.Config{Retries: -1}).Queue("orders").Push(t.Context(), client.Job{})
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.Equal(t, s.got()[0].header.Get("Idempotency-Key"), receipt.ID)
	})
}

// answerBatch answers a batch as the API does. It refuses a job whose payload is "bad".
func answerBatch(w http.ResponseWriter, body map[string]any) {
	var results []any
	for _, j := range body["jobs"].([]any) {
		job := j.(map[string]any)
		if job["payload"] == "bad" {
			results = append(results, map[string]any{"error": map[string]any{"code": "invalid_request", "status": 400,
				"detail": "bad"}})
			continue
		}
		results = append(results, map[string]any{"id": job["id"], "queue": "orders", "state": "scheduled",
			"run_at": time.Now(), "duplicate": false})
	}
	text, _ := json.Marshal(map[string]any{"results": results})
	say(w, 200, string(text))
}

func TestPushBatch(t *testing.T) {
	t.Parallel()
	t.Run("splits a batch into requests that the API accepts", func(t *testing.T) {
		t.Parallel()
		var s *server
		s = serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			require.LessOrEqual(t, r.ContentLength, int64(1<<20))
			answerBatch(w, s.got()[n].body)
		})
		q := s.client(t, client.Config{}).Queue("orders")

		jobs := make([]client.Job, 1201)
		for i := range jobs {
			jobs[i] = client.Job{Payload: i}
		}
		jobs[700].Payload = "bad"
		results, err := q.PushBatch(t.Context(), jobs)
		require.NoError(t, err, "a refused job does not fail the batch")
		require.Len(t, s.got(), 3)
		ids := map[string]bool{}
		for i, r := range results {
			ids[r.ID] = true
			if i == 700 {
				require.ErrorIs(t, r.Err, client.ErrInvalidRequest)
				require.EqualError(t, r.Err, `error pushing jobs to the queue "orders": job 700: bad`)
				continue
			}
			require.NoError(t, r.Err)
			sent := s.got()[i/500].body["jobs"].([]any)[i%500].(map[string]any)
			require.Equal(t, sent["id"], r.ID, "results are in the order of the jobs")
			require.InDelta(t, i, sent["payload"], 0)
		}
		require.Len(t, ids, len(jobs), "each job has an ID, including the refused job")

		large := make([]client.Job, 10)
		for i := range large {
			large[i] = client.Job{Payload: strings.Repeat("x", 250<<10)}
		}
		_, err = q.PushBatch(t.Context(), large)
		require.NoError(t, err)
		require.Len(t, s.got(), 3+3, "four jobs of 250 KiB fit into 1 MiB")

		results, err = q.PushBatch(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, results)
	})

	t.Run("continues after a failed request", func(t *testing.T) {
		t.Parallel()
		var s *server
		s = serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				say(w, 503, `{"code":"store_unavailable","status":503,"detail":"unavailable"}`)
				return
			}
			answerBatch(w, s.got()[n].body)
		})
		results, err := s.client(t, client.Config{Retries: -1}).Queue("orders").PushBatch(t.Context(),
			append(make([]client.Job, 501), client.Job{Payload: func() {}}))
		require.ErrorIs(t, err, client.ErrStoreUnavailable)
		for i, r := range results {
			require.NotEmpty(t, r.ID)
			switch {
			case i < 500:
				require.ErrorIs(t, r.Err, client.ErrStoreUnavailable)
			case i == 500:
				require.NoError(t, r.Err)
			default:
				require.ErrorContains(t, r.Err, "job 501: the payload cannot be encoded as JSON")
			}
		}
	})
}

func TestFinish(t *testing.T) {
	t.Parallel()
	t.Run("succeeds if the lost answer reported success", func(t *testing.T) {
		t.Parallel()
		ctx := t.Context()
		for name, test := range map[string]struct {
			call  func(*client.Queue) (client.JobStatus, error)
			state client.JobState
		}{
			"a cancel": {func(q *client.Queue) (client.JobStatus, error) {
				return q.Cancel(ctx, "a")
			}, client.JobCanceled},
			"an ack": {func(q *client.Queue) (client.JobStatus, error) {
				return q.Ack(ctx, "a", 2)
			}, client.JobSucceeded},
			"a nack": {func(q *client.Queue) (client.JobStatus, error) {
				return q.Nack(ctx, "a", 2, client.NackOptions{Error: "why"})
			}, client.JobScheduled},
			"a nack of the last attempt": {func(q *client.Queue) (client.JobStatus, error) {
				return q.Nack(ctx, "a", 2, client.NackOptions{Error: "why"})
			}, client.JobDead},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, lost := range []bool{true, false} {
					s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
						if n == 0 && lost {
							cut(w)
						}
						say(w, 409, `{"code":"job_conflict","status":409,"state":"`+string(test.state)+`","attempt":2}`)
					})
					got, err := test.call(s.client(t, client.Config{}).Queue("orders"))
					if !lost {
						require.ErrorIs(t, err, client.ErrJobConflict, "it is a conflict if no answer was lost")
						continue
					}
					require.NoError(t, err)
					require.Equal(t, test.state, got.State)
				}
			})
		}
	})

	t.Run("tries again while the attempt is being dispatched", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				say(w, 409, `{"code":"job_conflict","status":409,"state":"dispatching","attempt":1}`)
				return
			}
			say(w, 200, `{"id":"a","queue":"orders","state":"succeeded","attempt":1}`)
		})
		q := s.client(t, client.Config{}).Queue("orders")
		status, err := q.Ack(t.Context(), "a", 1)
		require.NoError(t, err)
		require.Equal(t, client.JobSucceeded, status.State)

		other := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			say(w, 409, `{"code":"job_conflict","status":409,"state":"dispatching","attempt":2}`)
		})
		_, err = other.client(t, client.Config{}).Queue("orders").Ack(t.Context(), "a", 1)
		require.ErrorIs(t, err, client.ErrJobConflict)
		require.Len(t, other.got(), 1, "Ack does not retry while a later attempt is dispatching")
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "dead", r.URL.Query().Get("state"))
		switch r.URL.Query().Get("cursor") {
		case "":
			say(w, 200, `{"jobs":[{"id":"a"},{"id":"b"}],"next_cursor":"c+1"}`)
		case "c+1":
			say(w, 200, `{"jobs":[],"next_cursor":"c2"}`)
		case "c2":
			say(w, 200, `{"jobs":[{"id":"c"}]}`)
		default:
			say(w, 400, fmt.Sprintf(`{"code":"invalid_request","status":400,"detail":"request %d"}`, n))
		}
	})
	q := s.client(t, client.Config{}).Queue("orders")
	var ids []string
	for j, err := range q.List(t.Context(), client.JobDead) {
		require.NoError(t, err)
		ids = append(ids, j.ID)
	}
	require.Equal(t, []string{"a", "b", "c"}, ids)

	for _, err := range q.List(t.Context(), client.JobDead) {
		require.NoError(t, err)
		break
	}
	require.Len(t, s.got(), 4, "List does not read a page that the caller does not use")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := 0
	for _, err := range q.List(ctx, client.JobDead) {
		require.ErrorIs(t, err, context.Canceled)
		errs++
	}
	require.Equal(t, 1, errs, "an error ends the iteration")
}

func TestQueueRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, `{"moved":2}`) })
	q, ctx := s.client(t, client.Config{}).Queue("orders"), t.Context()
	delay := 90 * time.Second
	_, err1 := q.Reschedule(ctx, "a:b", client.JobChange{Delay: &delay, Payload: json.RawMessage("null")})
	_, err2 := q.Nack(ctx, "a", 2, client.NackOptions{Error: "no stock", Delay: &delay})
	_, err3 := q.Pause(ctx, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	_, err4 := q.Pause(ctx, time.Time{})
	_, err5 := q.Resume(ctx)
	moved, err6 := q.Redrive(ctx, client.RedriveOptions{IDs: []string{"a", "b"}})
	require.NoError(t, errors.Join(err1, err2, err3, err4, err5, err6))
	require.EqualValues(t, 2, moved)
	for i, want := range []struct {
		call string
		body map[string]any
	}{
		{"PATCH /v1/queues/orders/jobs/a%3Ab", map[string]any{"delay_ms": 90_000., "payload": nil}},
		{"POST /v1/queues/orders/jobs/a/nack", map[string]any{"attempt": 2., "error": "no stock", "delay_ms": 90_000.}},
		{"POST /v1/queues/orders/pause", map[string]any{"until": "2030-01-02T03:04:05.000Z"}},
		{"POST /v1/queues/orders/pause", map[string]any{}},
		{"POST /v1/queues/orders/resume", map[string]any{}},
		{"POST /v1/queues/orders/redrive", map[string]any{"ids": []any{"a", "b"}}},
	} {
		got := s.got()[i]
		require.Equal(t, want.call, got.method+" "+got.path)
		require.Equal(t, want.body, got.body)
	}
}
