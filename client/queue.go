package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// JobState is where a job is.
type JobState string

// The states of a job.
const (
	JobScheduled   JobState = "scheduled"
	JobDispatching JobState = "dispatching"
	JobDispatched  JobState = "dispatched"
	JobAwaitingAck JobState = "awaiting_ack"
	JobSucceeded   JobState = "succeeded"
	JobCanceled    JobState = "canceled"
	JobExpired     JobState = "expired"
	JobDead        JobState = "dead"
)

// Queue is one of the deployment's queues.
type Queue struct {
	client *Client
	name   string
}

// Queue names a queue. It sends nothing: an unknown name is [ErrQueueNotFound] at the first call.
func (c *Client) Queue(name string) *Queue { return &Queue{client: c, name: name} }

// Name is the queue's.
func (q *Queue) Name() string { return q.name }

// QueueStats are a queue's counts.
type QueueStats struct {
	Name        string `json:"name"`
	Scheduled   int64  `json:"scheduled"`     // those whose time has not come
	Due         int64  `json:"due"`           // those whose time has come
	Dispatching int64  `json:"dispatching"`   // on their way to SQS
	AwaitingAck int64  `json:"awaiting_ack"`  // with a consumer
	Dead        int64  `json:"dead"`          // failed for the last time
	Outbox      *int64 `json:"outbox"`        // taken in while Redis was down; nil when that cannot be told
	OldestDueMS int64  `json:"oldest_due_ms"` // how long the oldest due job has been waiting
	Paused      bool   `json:"paused"`
}

// Queues returns the counts of every queue.
func (c *Client) Queues(ctx context.Context) ([]QueueStats, error) {
	var b struct {
		Queues []QueueStats `json:"queues"`
	}
	_, err := c.do(ctx, call{op: "listing the queues", method: "GET", path: pathTo("v1", "queues"), out: &b})
	return b.Queues, err
}

// Stats returns the queue's counts.
func (q *Queue) Stats(ctx context.Context) (QueueStats, error) {
	var s QueueStats
	err := q.do(ctx, "counting", call{method: "GET", out: &s})
	return s, err
}

// Pause stops the queue's jobs from being sent to SQS, until an instant, or for good when until is
// zero. Jobs are still taken in.
func (q *Queue) Pause(ctx context.Context, until time.Time) (QueueStats, error) {
	var s QueueStats
	body := struct {
		Until string `json:"until,omitzero"`
	}{instant(until)}
	err := q.do(ctx, "pausing", call{method: "POST", body: body, out: &s}, "pause")
	return s, err
}

// Resume ends a pause.
func (q *Queue) Resume(ctx context.Context) (QueueStats, error) {
	var s QueueStats
	err := q.do(ctx, "resuming", call{method: "POST", body: struct{}{}, out: &s}, "resume")
	return s, err
}

// Redrive sends dead jobs back to scheduled, due now, with attempt 0: those of ids (up to 500), or
// without any up to limit of the oldest (1 to 10 000; 0 is 1 000). It returns how many moved; ids
// that are not dead are passed over.
func (q *Queue) Redrive(ctx context.Context, ids []string, limit int) (int64, error) {
	var b struct {
		Moved int64 `json:"moved"`
	}
	body := struct {
		IDs   []string `json:"ids,omitzero"`
		Limit int      `json:"limit,omitzero"`
	}{ids, limit}
	request := call{method: "POST", body: body, out: &b}
	if len(ids) == 0 {
		request.repeat = unsent // done twice it would move twice as many
	}
	err := q.do(ctx, "redriving", request, "redrive")
	return b.Moved, err
}

// do carries out a call on the queue itself.
func (q *Queue) do(ctx context.Context, doing string, request call, action ...string) error {
	request.op = fmt.Sprintf("%s the queue %q", doing, q.name)
	if err := checkName(request.op, "queue", q.name); err != nil {
		return err
	}
	request.path = pathTo(append([]string{"v1", "queues", q.name}, action...)...)
	_, err := q.client.do(ctx, request)
	return err
}

// instant writes t as the contract has it, rounded up to a millisecond; the zero time is "".
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}

// payload encodes what a job carries. Nil is JSON's null.
func payload(v any) (json.RawMessage, error) {
	text, err := encodeJSON(v)
	if err != nil {
		return nil, fmt.Errorf("the payload cannot be encoded as JSON: %w", err)
	}
	return text, nil
}
