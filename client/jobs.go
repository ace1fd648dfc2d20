package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"
)

// JobInfo is a job as it stands.
type JobInfo struct {
	ID           string            `json:"id"`
	Queue        string            `json:"queue"`
	State        JobState          `json:"state"`
	RunAt        time.Time         `json:"run_at"`
	DispatchedAt *time.Time        `json:"dispatched_at"` // when SQS took the last attempt; nil before
	Attempt      int               `json:"attempt"`
	MaxAttempts  int               `json:"max_attempts"`
	LastError    *string           `json:"last_error"`
	Payload      json.RawMessage   `json:"payload"`
	Group        string            `json:"group,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	ExpiresAt    *time.Time        `json:"expires_at,omitempty"`
}

// Settled is a job's state after a cancel, an ack or a nack.
type Settled struct {
	ID      string    `json:"id"`
	Queue   string    `json:"queue"`
	State   JobState  `json:"state"`
	RunAt   time.Time `json:"run_at"` // the next attempt's after a nack
	Attempt int       `json:"attempt"`
}

// Get reads a job. A finished one can be read for the dedup window. Errors: [ErrJobNotFound].
func (q *Queue) Get(ctx context.Context, id string) (JobInfo, error) {
	var j JobInfo
	_, err := q.job(ctx, "reading", id, call{method: "GET", out: &j})
	return j, err
}

// Change is what [Queue.Reschedule] changes. Give a Delay from now, a RunAt or neither, and a
// Payload or not.
type Change struct {
	// Delay is from now; nil keeps the time.
	Delay *time.Duration
	// RunAt is the new time; zero keeps it.
	RunAt time.Time
	// Payload replaces the payload; nil keeps it. For JSON's null, give json.RawMessage("null").
	Payload any
}

// Reschedule changes a job that is still scheduled, and keeps its ID. Errors: [ErrJobNotFound];
// [ErrJobConflict] once it is on its way.
func (q *Queue) Reschedule(ctx context.Context, id string, change Change) (JobInfo, error) {
	body := struct {
		RunAt   string          `json:"run_at,omitzero"`
		Delay   *int64          `json:"delay_ms,omitzero"`
		Payload json.RawMessage `json:"payload,omitzero"`
	}{RunAt: instant(change.RunAt)}
	if change.Delay != nil {
		ms := ceilMillis(*change.Delay)
		body.Delay = &ms
	}
	if change.Payload != nil {
		text, err := payload(change.Payload)
		if err != nil {
			return JobInfo{}, fmt.Errorf("error rescheduling the job %q: %w", id, err)
		}
		body.Payload = text
	}
	var j JobInfo
	_, err := q.job(ctx, "rescheduling", id, call{method: "PATCH", body: body, out: &j})
	return j, err
}

// Cancel takes a scheduled job out. Errors: [ErrJobNotFound]; [ErrJobConflict] once it is on its
// way.
func (q *Queue) Cancel(ctx context.Context, id string) (Settled, error) {
	var s Settled
	r, err := q.job(ctx, "canceling", id, call{method: "DELETE", out: &s})
	return q.settled(s, id, r, err, JobCanceled)
}

// Ack says that an attempt succeeded. Errors: [ErrJobNotFound]; [ErrJobConflict] with the job's
// State when it awaits no ack of that attempt: [JobDispatched] for a job of one attempt, which needs
// none.
func (q *Queue) Ack(ctx context.Context, id string, attempt int) (Settled, error) {
	var s Settled
	body := map[string]int{"attempt": attempt}
	r, err := q.settle(ctx, "acknowledging", id, attempt, call{method: "POST", body: body, out: &s}, "ack")
	return q.settled(s, id, r, err, JobSucceeded)
}

// Nack says that an attempt failed, and why: the job is scheduled again, after delay or, when that
// is nil, after its backoff; after its last attempt it is dead. Errors: as of [Queue.Ack].
func (q *Queue) Nack(ctx context.Context, id string, attempt int, why string, delay *time.Duration) (Settled, error) {
	var s Settled
	body := struct {
		Attempt int    `json:"attempt"`
		Error   string `json:"error,omitzero"`
		Delay   *int64 `json:"delay_ms,omitzero"`
	}{Attempt: attempt, Error: why}
	if delay != nil {
		ms := ceilMillis(*delay)
		body.Delay = &ms
	}
	r, err := q.settle(ctx, "rejecting", id, attempt, call{method: "POST", body: body, out: &s}, "nack")
	return q.settled(s, id, r, err, JobScheduled, JobDead)
}

// settled takes a conflict for success when a repetition met what an earlier attempt, whose answer
// was lost, had done.
func (q *Queue) settled(s Settled, id string, r reply, err error, done ...JobState) (Settled, error) {
	var e *Error
	if !r.uncertain || !errors.As(err, &e) || !errors.Is(e, ErrJobConflict) {
		return s, err
	}
	for _, state := range done {
		if e.State == state {
			return Settled{ID: id, Queue: q.name, State: state, Attempt: e.Attempt}, nil
		}
	}
	return s, err
}

// dispatchLag is how long a dispatcher may take to note that SQS has a message.
const dispatchLag = 3 * time.Second

// settle sends an ack or a nack. A consumer can be quicker than the dispatcher's note that SQS has
// the message: while the job is still dispatching that attempt, it asks again.
func (q *Queue) settle(ctx context.Context, doing, id string, attempt int, request call, action string) (reply, error) {
	started := time.Now()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		r, err := q.job(ctx, doing, id, request, action)
		var e *Error
		early := errors.As(err, &e) && errors.Is(e, ErrJobConflict) && e.State == JobDispatching &&
			(e.Attempt == 0 || e.Attempt == attempt)
		if !early || time.Since(started) > dispatchLag || !pause(ctx, wait+rand.N(wait)) {
			return r, err
		}
	}
}

// job carries out a call on one job.
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

// JobPage is one page of a listing.
type JobPage struct {
	Jobs []JobInfo `json:"jobs"`
	// NextCursor asks for the next page; "" on the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ListPage reads one page of jobs: those in a state ("" for all), up to limit (1 to 200; 0 is the
// API's default), from a cursor ("" for the start).
func (q *Queue) ListPage(ctx context.Context, state JobState, limit int, cursor string) (JobPage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"state": string(state), "cursor": cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var p JobPage
	err := q.do(ctx, "listing the jobs of", call{method: "GET", query: query, out: &p}, "jobs")
	return p, err
}

// listPage is the page size of [Queue.List].
const listPage = 100

// List reads all jobs in a state ("" for all), page by page. It ends after the first error.
func (q *Queue) List(ctx context.Context, state JobState) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		for cursor := ""; ; {
			page, err := q.ListPage(ctx, state, listPage, cursor)
			if err != nil {
				yield(JobInfo{}, err)
				return
			}
			for _, j := range page.Jobs {
				if !yield(j, nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				return
			}
		}
	}
}
