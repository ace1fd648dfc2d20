package fakeapi

import (
	"net/http"
	"time"
)

type job struct {
	id, queue, state string
	runAt            time.Time
	attempt          int
	maxAttempts      int
	payload          any
}

func (j *job) document() map[string]any {
	return map[string]any{
		"id": j.id, "queue": j.queue, "state": j.state, "run_at": j.runAt, "attempt": j.attempt,
		"max_attempts": j.maxAttempts, "payload": j.payload, "dispatched_at": nil, "last_error": nil,
	}
}

// push enqueues a job, or returns the existing one. A job with several attempts and no delay is
// immediately in the state awaiting_ack.
func (a *API) push(queue string, body map[string]any) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, _ := body["id"].(string)
	if j, exists := a.jobs[id]; exists {
		doc := j.document()
		doc["duplicate"] = true
		return http.StatusOK, doc
	}

	j := &job{
		id: id, queue: queue, state: "scheduled", runAt: time.Now().Add(milliseconds(body, "delay_ms")),
		maxAttempts: max(1, int(number(body, "max_attempts"))), payload: body["payload"],
	}
	if j.maxAttempts > 1 && number(body, "delay_ms") == 0 {
		j.state, j.attempt = "awaiting_ack", 1
	}
	a.jobs[id] = j
	doc := j.document()
	doc["duplicate"] = false
	return http.StatusAccepted, doc
}

func (a *API) job(id string) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, exists := a.jobs[id]
	if !exists {
		return refuse(http.StatusNotFound, "job_not_found", nil)
	}
	return http.StatusOK, j.document()
}

// finish acknowledges or rejects an attempt.
func (a *API) finish(id string, ok bool) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, exists := a.jobs[id]
	if !exists {
		return refuse(http.StatusNotFound, "job_not_found", nil)
	}
	if j.state != "awaiting_ack" {
		return refuse(http.StatusConflict, "job_conflict", map[string]any{"state": j.state, "attempt": j.attempt})
	}

	switch {
	case ok:
		j.state = "succeeded"
	case j.attempt < j.maxAttempts:
		j.state = "scheduled"
	default:
		j.state = "dead"
	}
	return http.StatusOK, j.document()
}
