package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// JobInfo is a job as the API stores it. Its JSON form is the same as in the API.
type JobInfo struct {
	ID    string   `json:"id"`
	Queue string   `json:"queue"`
	State JobState `json:"state"`
	// RunAt is the time at which the job or its next attempt is due.
	RunAt time.Time `json:"run_at"`
	// DispatchedAt is the time at which SQS accepted the last attempt. The zero time means that SQS
	// has accepted none.
	DispatchedAt time.Time `json:"dispatched_at"`
	// Attempt is the number of the last attempt; 0 before the first.
	Attempt     int `json:"attempt"`
	MaxAttempts int `json:"max_attempts"`
	// LastError is the error of the last failed attempt, or "".
	LastError string            `json:"last_error"`
	Payload   json.RawMessage   `json:"payload"`
	Group     string            `json:"group,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// ExpiresAt is the time at which Sluice drops the job if it has not yet sent the job to SQS.
	// The zero time means never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

type plainJobInfo JobInfo

// MarshalJSON implements json.Marshaler. Like the API, it writes null for a DispatchedAt or
// LastError that is not set.
func (j JobInfo) MarshalJSON() ([]byte, error) {
	b := struct {
		plainJobInfo

		DispatchedAt *time.Time `json:"dispatched_at"`
		LastError    *string    `json:"last_error"`
	}{plainJobInfo: plainJobInfo(j)}

	if !j.DispatchedAt.IsZero() {
		b.DispatchedAt = &j.DispatchedAt
	}
	if j.LastError != "" {
		b.LastError = &j.LastError
	}
	return encodeJSON(b)
}

// JobStatus is the state of a job after it was canceled, acknowledged or rejected.
type JobStatus struct {
	ID    string   `json:"id"`
	Queue string   `json:"queue"`
	State JobState `json:"state"`
	// RunAt is the time at which the next attempt is due, after [Queue.Nack].
	RunAt   time.Time `json:"run_at"`
	Attempt int       `json:"attempt"`
}

// Get reads a job. A finished job exists until its deduplication window ends. Errors:
// [ErrJobNotFound].
func (q *Queue) Get(ctx context.Context, id string) (JobInfo, error) {
	var j JobInfo
	_, err := q.job(ctx, "reading", id, call{method: "GET", out: &j})
	return j, err
}

// JobChange describes a change of a scheduled job: its due time, its payload, or both. Set at most
// one of Delay and RunAt.
type JobChange struct {
	// Delay makes the job due after this duration. Nil keeps the due time.
	Delay *time.Duration
	// RunAt makes the job due at this time. The zero time keeps the due time.
	RunAt time.Time
	// Payload replaces the payload. Nil keeps it; json.RawMessage("null") is JSON's null.
	Payload any
}

// Reschedule changes a job that is still scheduled, and keeps its ID. Errors: [ErrJobNotFound];
// [ErrJobConflict] if the job is no longer scheduled.
func (q *Queue) Reschedule(ctx context.Context, id string, change JobChange) (JobInfo, error) {
	body := struct {
		RunAt   string          `json:"run_at,omitzero"`
		Delay   *int64          `json:"delay_ms,omitzero"`
		Payload json.RawMessage `json:"payload,omitzero"`
	}{RunAt: instant(change.RunAt), Delay: ceilMillisOrNil(change.Delay)}

	if change.Payload != nil {
		text, err := encodePayload(change.Payload)
		if err != nil {
			return JobInfo{}, fmt.Errorf("error rescheduling the job %q: %w", id, err)
		}
		body.Payload = text
	}

	var j JobInfo
	_, err := q.job(ctx, "rescheduling", id, call{method: "PATCH", body: body, out: &j})
	return j, err
}

// Cancel cancels a scheduled job. Errors: [ErrJobNotFound]; [ErrJobConflict] if the job is no
// longer scheduled.
func (q *Queue) Cancel(ctx context.Context, id string) (JobStatus, error) {
	var s JobStatus
	r, err := q.job(ctx, "canceling", id, call{method: "DELETE", out: &s})
	return q.afterRetry(s, id, r, err, JobCanceled)
}

// Ack acknowledges an attempt that succeeded.
//
// Errors: [ErrJobNotFound]; [ErrJobConflict] if the job does not expect an acknowledgement of this
// attempt. [Error.State] is then the job's state: [JobDispatched] for a job with one attempt, which
// needs no acknowledgement.
func (q *Queue) Ack(ctx context.Context, id string, attempt int) (JobStatus, error) {
	var s JobStatus
	body := map[string]int{"attempt": attempt}
	r, err := q.finish(ctx, "acknowledging", id, attempt, call{method: "POST", body: body, out: &s}, "ack")
	return q.afterRetry(s, id, r, err, JobSucceeded)
}

// NackOptions describes the failure of an attempt and the delay before the next attempt.
type NackOptions struct {
	// Error describes the failure. It becomes [JobInfo.LastError].
	Error string
	// Delay is the time until the next attempt is due. Nil means the job's backoff.
	Delay *time.Duration
}

// Nack rejects an attempt that failed. Sluice schedules the next attempt. After the last attempt,
// the job is dead. Errors: same as [Queue.Ack].
func (q *Queue) Nack(ctx context.Context, id string, attempt int, o NackOptions) (JobStatus, error) {
	var s JobStatus
	body := struct {
		Attempt int    `json:"attempt"`
		Error   string `json:"error,omitzero"`
		Delay   *int64 `json:"delay_ms,omitzero"`
	}{attempt, o.Error, ceilMillisOrNil(o.Delay)}
	r, err := q.finish(ctx, "rejecting", id, attempt, call{method: "POST", body: body, out: &s}, "nack")
	return q.afterRetry(s, id, r, err, JobScheduled, JobDead)
}

// afterRetry turns an [ErrJobConflict] into success if the answer to an earlier attempt was lost
// and the job is now in one of the wanted states.
func (q *Queue) afterRetry(s JobStatus, id string, r reply, err error, wanted ...JobState) (JobStatus, error) {
	var e *Error
	if !r.uncertain || !errors.As(err, &e) || !errors.Is(e, ErrJobConflict) {
		return s, err
	}
	for _, state := range wanted {
		if e.State == state {
			return JobStatus{ID: id, Queue: q.name, State: state, Attempt: e.Attempt}, nil
		}
	}
	return s, err
}

// dispatchLag is the maximum time between the delivery of a message and the dispatcher's record
// that SQS accepted the message.
const dispatchLag = 3 * time.Second

// finish sends an acknowledgement or a rejection. A consumer can receive the message before the
// dispatcher has recorded that SQS accepted it. While the API reports that the job is still
// dispatching the attempt, finish retries, for up to dispatchLag.
func (q *Queue) finish(ctx context.Context, doing, id string, attempt int, request call, action string) (reply, error) {
	started := time.Now()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		r, err := q.job(ctx, doing, id, request, action)
		if !isEarly(err, attempt) || time.Since(started) > dispatchLag || !pause(ctx, wait+rand.N(wait)) {
			return r, err
		}
	}
}

// isEarly reports whether err is a conflict because the job is still dispatching the attempt.
func isEarly(err error, attempt int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && errors.Is(e, ErrJobConflict) && e.State == JobDispatching && (e.Attempt == 0 || e.Attempt == attempt)
}

// job sends a request for one job.
func (q *Queue) job(ctx context.Context, doing, id string, request call, action ...string) (reply, error) {
	request.op = fmt.Sprintf("%s the job %q of the queue %q", doing, id, q.name)
	if err := checkName(request.op, "queue", q.name); err != nil {
		return reply{}, err
	}
	if err := checkName(request.op, "id", id); err != nil {
		return reply{}, err
	}
	request.path = pathTo(append([]string{"v1", "queues", q.name, "jobs", id}, action...)...)
	return q.client.do(ctx, request)
}
