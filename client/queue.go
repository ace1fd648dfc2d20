package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// JobState is the state of a job.
type JobState string

// The states of a job.
const (
	JobScheduled   JobState = "scheduled"    // waits until it is due
	JobDispatching JobState = "dispatching"  // is being sent to SQS
	JobDispatched  JobState = "dispatched"   // SQS accepted it, and no acknowledgement is expected
	JobAwaitingAck JobState = "awaiting_ack" // SQS accepted it, and the consumer has to acknowledge it
	JobSucceeded   JobState = "succeeded"    // the consumer acknowledged it
	JobCanceled    JobState = "canceled"
	JobExpired     JobState = "expired" // it was not sent before its ExpiresAt
	JobDead        JobState = "dead"    // its last attempt failed
)

// Queue is a handle for one queue of the deployment. It is safe for concurrent use.
type Queue struct {
	client *Client
	name   string
}

// Queue returns a handle for the queue. It sends nothing; if the queue does not exist, each call
// returns [ErrQueueNotFound].
func (c *Client) Queue(name string) *Queue { return &Queue{client: c, name: name} }

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.name }

// QueueStats counts the jobs of a queue. Its JSON form is the same as in the API.
type QueueStats struct {
	Name string `json:"name"`
	// Scheduled is the number of jobs that are not yet due.
	Scheduled int64 `json:"scheduled"`
	// Due is the number of jobs that are due and wait for the dispatcher.
	Due int64 `json:"due"`
	// Dispatching is the number of jobs that are being sent to SQS.
	Dispatching int64 `json:"dispatching"`
	// AwaitingAck is the number of jobs that a consumer has to acknowledge.
	AwaitingAck int64 `json:"awaiting_ack"`
	// Dead is the number of jobs whose last attempt failed.
	Dead int64 `json:"dead"`
	// Outbox is the number of jobs that were accepted while Redis was unavailable and are not yet
	// moved to Redis. It is nil if DynamoDB could not be read.
	Outbox *int64 `json:"outbox"`
	// OldestDue is the time since the oldest due job became due; zero if no job is due.
	OldestDue time.Duration `json:"-"`
	// Paused reports whether the queue is paused.
	Paused bool `json:"paused"`
}

type plainQueueStats QueueStats

type queueStatsBody struct {
	plainQueueStats

	OldestDueMS millis `json:"oldest_due_ms"`
}

// MarshalJSON implements json.Marshaler.
func (s QueueStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(queueStatsBody{plainQueueStats(s), millis(s.OldestDue)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *QueueStats) UnmarshalJSON(text []byte) error {
	var b queueStatsBody
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*s = QueueStats(b.plainQueueStats)
	s.OldestDue = time.Duration(b.OldestDueMS)
	return nil
}

// Queues returns the job counts of every queue.
func (c *Client) Queues(ctx context.Context) ([]QueueStats, error) {
	var b struct {
		Queues []QueueStats `json:"queues"`
	}
	_, err := c.do(ctx, call{op: "listing the queues", method: "GET", path: pathTo("v1", "queues"), out: &b})
	return b.Queues, err
}

// Stats returns the job counts of the queue. Errors: [ErrQueueNotFound].
func (q *Queue) Stats(ctx context.Context) (QueueStats, error) {
	var s QueueStats
	err := q.do(ctx, "counting the jobs of", call{method: "GET", out: &s})
	return s, err
}

// Pause stops the dispatcher from sending jobs of the queue to SQS, until the given time. The zero
// time pauses until [Queue.Resume]. The queue still accepts jobs. Errors: [ErrQueueNotFound].
func (q *Queue) Pause(ctx context.Context, until time.Time) (QueueStats, error) {
	var s QueueStats
	body := struct {
		Until string `json:"until,omitzero"`
	}{instant(until)}
	err := q.do(ctx, "pausing", call{method: "POST", body: body, out: &s}, "pause")
	return s, err
}

// Resume ends a pause. Errors: [ErrQueueNotFound].
func (q *Queue) Resume(ctx context.Context) (QueueStats, error) {
	var s QueueStats
	err := q.do(ctx, "resuming", call{method: "POST", body: struct{}{}, out: &s}, "resume")
	return s, err
}

// RedriveOptions selects the dead jobs to redrive: by ID, or the oldest. Set at most one of IDs and
// Limit.
type RedriveOptions struct {
	// IDs are the IDs of up to 500 jobs. Jobs that are not dead are skipped.
	IDs []string
	// Limit is the maximum number of jobs to redrive, the oldest first: 1 to 10,000. Defaults to
	// 1,000.
	Limit int
}

// Redrive schedules dead jobs again, due now and with attempt 0, and returns their number. Errors:
// [ErrQueueNotFound], [ErrInvalidRequest].
func (q *Queue) Redrive(ctx context.Context, o RedriveOptions) (int64, error) {
	var b struct {
		Moved int64 `json:"moved"`
	}
	body := struct {
		IDs   []string `json:"ids,omitzero"`
		Limit int      `json:"limit,omitzero"`
	}{o.IDs, o.Limit}
	request := call{method: "POST", body: body, out: &b}
	if len(o.IDs) == 0 {
		request.retry = retryUnsent // a second request would redrive further jobs
	}
	err := q.do(ctx, "redriving", request, "redrive")
	return b.Moved, err
}

// do sends a request that concerns the whole queue, not a single job.
func (q *Queue) do(ctx context.Context, doing string, request call, action ...string) error {
	request.op = fmt.Sprintf("%s the queue %q", doing, q.name)
	if err := checkName(request.op, "queue", q.name); err != nil {
		return err
	}
	request.path = pathTo(append([]string{"v1", "queues", q.name}, action...)...)
	_, err := q.client.do(ctx, request)
	return err
}
