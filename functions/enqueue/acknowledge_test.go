package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

func (f *fixture) payload(t testing.TB, id string) json.RawMessage {
	t.Helper()
	info, err := f.queues.Get(t.Context(), "orders", id)
	require.NoError(t, err)
	return info.Payload
}

func TestAcknowledge(t *testing.T) {
	t.Run("acknowledging an attempt that awaits no acknowledgement is a conflict", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "waits", "max_attempts": 3, "delay_ms": 60_000})
		f.post(t, jobsPath, object{"payload": 1, "id": "sent", "max_attempts": 3})
		f.post(t, jobsPath, object{"payload": 1, "id": "fire-and-forget"})
		f.deliver(t, 2)
		for name, c := range map[string]struct {
			id      string
			attempt int
			state   string
		}{
			"a job that was never sent":                {"waits", 1, "scheduled"},
			"an attempt that was not sent yet":         {"sent", 2, "awaiting_ack"},
			"the last attempt, which was not sent yet": {"sent", 3, "awaiting_ack"},
			"a job that needs no ack":                  {"fire-and-forget", 1, "dispatched"},
			"an attempt above max_attempts":            {"sent", 100, "awaiting_ack"},
		} {
			for _, call := range []string{"ack", "nack"} {
				t.Run(call+" of "+name, func(t *testing.T) {
					a := f.Want(t, http.StatusConflict, http.MethodPost, jobsPath+"/"+c.id+"/"+call,
						object{"attempt": c.attempt})
					require.Equal(t, "job_conflict", a.Body["code"])
					require.Equal(t, c.state, a.Body["state"])
				})
			}
		}
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/sent/ack", object{"attempt": 1})
		require.Equal(t, "succeeded", a.Body["state"])
		a = f.Want(t, http.StatusConflict, http.MethodPost, jobsPath+"/sent/nack", object{"attempt": 1})
		require.Equal(t, "succeeded", a.Body["state"])
	})

	t.Run("a nack schedules the next attempt; a nack of the last attempt makes the job dead", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "a", "max_attempts": 2})
		f.deliver(t, 1)
		a := f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/a/nack",
			object{"attempt": 1, "error": "no luck", "delay_ms": 0})
		require.Equal(t, "scheduled", a.Body["state"])
		require.NotEmpty(t, a.Body["run_at"])
		f.deliver(t, 1)
		require.Equal(t, "dead", f.Want(t, http.StatusOK, http.MethodPost, jobsPath+"/a/nack",
			object{"attempt": 2, "error": "none\nat all"}).Body["state"])
		shown := f.Want(t, http.StatusOK, http.MethodGet, jobsPath+"/a", nil)
		require.Equal(t, "none at all", shown.Body["last_error"])
		require.EqualValues(t, 2, shown.Body["attempt"])
		require.EqualValues(t, 2, shown.Body["max_attempts"])

		require.EqualValues(t, 1, f.Want(t, http.StatusOK, http.MethodPost, "/v1/queues/orders/redrive",
			object{"ids": []string{"a", "unknown"}}).Body["moved"])
		shown = f.Want(t, http.StatusOK, http.MethodGet, jobsPath+"/a", nil)
		require.Equal(t, "scheduled", shown.Body["state"])
		require.EqualValues(t, 0, shown.Body["attempt"])
	})
}

func TestChange(t *testing.T) {
	t.Run("changing a job that is being dispatched is a conflict", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "a"})
		f.claim(t, 1)
		for _, a := range []apitest.Reply{
			f.Want(t, http.StatusConflict, http.MethodDelete, jobsPath+"/a", nil),
			f.Want(t, http.StatusConflict, http.MethodPatch, jobsPath+"/a", object{"delay_ms": 1}),
		} {
			require.Equal(t, "job_conflict", a.Body["code"])
			require.Equal(t, "dispatching", a.Body["state"])
		}
	})

	t.Run("a reschedule keeps the ID; a cancel ends the job", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "id": "a", "delay_ms": 60_000})
		changed := f.Want(t, http.StatusOK, http.MethodPatch, jobsPath+"/a",
			object{"run_at": "2031-01-01T00:00:00.000Z", "payload": object{"n": 2}})
		require.Equal(t, "2031-01-01T00:00:00.000Z", changed.Body["run_at"])
		require.Equal(t, object{"n": 2.0}, changed.Body["payload"])
		require.Equal(t, "canceled", f.Want(t, http.StatusOK, http.MethodDelete, jobsPath+"/a", nil).Body["state"])
		require.Equal(t, "canceled", f.Want(t, http.StatusOK, http.MethodGet, jobsPath+"/a", nil).Body["state"])
		require.Equal(t, "canceled", f.Want(t, http.StatusOK, http.MethodPost, jobsPath,
			object{"payload": 1, "id": "a"}).Body["state"], "the ID is still in use")
	})
}

func TestList(t *testing.T) {
	t.Run("returns each job once, for every page size", func(t *testing.T) {
		f := start(t)
		for id := range strings.SplitSeq("abcdefghij", "") {
			f.post(t, jobsPath, object{"payload": id, "id": id, "delay_ms": 60_000})
		}
		for _, limit := range []string{"1", "3", "10", "200"} {
			seen := map[string]int{}
			cursor, pages := "", 0
			for {
				page := f.Want(t, http.StatusOK, http.MethodGet,
					jobsPath+"?state=scheduled&limit="+limit+"&cursor="+url.QueryEscape(cursor), nil)
				for _, j := range page.Body["jobs"].([]any) {
					id, _ := j.(object)["id"].(string)
					seen[id]++
				}
				if cursor, _ = page.Body["next_cursor"].(string); cursor == "" {
					break
				}
				pages++
				require.Less(t, pages, 50)
			}
			require.Len(t, seen, 10, "limit %s", limit)
			for id, n := range seen {
				require.Equal(t, 1, n, id)
			}
		}
		require.Empty(t, f.Want(t, http.StatusOK, http.MethodGet, jobsPath+"?state=dead&cursor=", nil).Body["jobs"])
	})
}

func TestQueue(t *testing.T) {
	t.Run("can be counted, paused and resumed", func(t *testing.T) {
		f := start(t)
		f.post(t, jobsPath, object{"payload": 1, "delay_ms": 60_000})
		paused := f.Want(t, http.StatusOK, http.MethodPost, "/v1/queues/orders/pause", nil)
		require.Equal(t, true, paused.Body["paused"])
		require.Equal(t, false, f.Want(t, http.StatusOK, http.MethodPost, "/v1/queues/orders/resume",
			nil).Body["paused"])
		q := f.Want(t, http.StatusOK, http.MethodGet, "/v1/queues/orders", nil)
		require.Equal(t, object{
			"name": "orders", "scheduled": 1.0, "due": 0.0, "dispatching": 0.0, "awaiting_ack": 0.0, "dead": 0.0,
			"outbox": 0.0, "oldest_due_ms": 0.0, "paused": false,
		}, q.Body)
		require.Len(t, f.Want(t, http.StatusOK, http.MethodGet, "/v1/queues", nil).Body["queues"], 2)
	})

	t.Run("FIFO: a job can have a group, and IDs have a lower maximum length", func(t *testing.T) {
		f := start(t)
		longest := strings.Repeat("i", delayqueue.MaxFIFOID)
		f.post(t, fifoJobsPath, object{"payload": 1, "id": longest, "group": strings.Repeat("g", delayqueue.MaxGroup)})
		f.post(t, fifoJobsPath, object{"payload": 1, "group": "a!~"})
		f.post(t, fifoJobsPath, object{"payload": 1}) // gets its own group
		f.post(t, jobsPath, object{"payload": 1, "id": longest + "i"})
		shown := f.Want(t, http.StatusOK, http.MethodGet, fifoJobsPath+"/"+longest, nil)
		require.Equal(t, strings.Repeat("g", delayqueue.MaxGroup), shown.Body["group"])
		for name, c := range map[string]struct {
			body  object
			field string
		}{
			"an id that is too long for FIFO":  {object{"id": longest + "i"}, "id"},
			"a group with a space":             {object{"group": "a b"}, "group"},
			"a group that is not ASCII":        {object{"group": "é"}, "group"},
			"a group that is too long":         {object{"group": strings.Repeat("g", delayqueue.MaxGroup+1)}, "group"},
			"a group with a control character": {object{"group": "\x00"}, "group"},
			"an id of 129 characters":          {object{"id": strings.Repeat("i", 129)}, "id"},
		} {
			t.Run(name, func(t *testing.T) {
				c.body["payload"] = 1
				require.Contains(t, apitest.InvalidFields(t,
					f.Want(t, http.StatusBadRequest, http.MethodPost, fifoJobsPath, c.body).Body),
					c.field)
			})
		}
		f.Want(t, http.StatusBadRequest, http.MethodPost, fifoJobsPath, object{"payload": 1}, "Idempotency-Key",
			longest+"i")
	})
}
