package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Job is a job to push. Only its payload is required.
type Job struct {
	// Payload becomes the SQS message's body, as JSON of up to 256 KiB. Nil is null; a
	// json.RawMessage is sent as it is.
	Payload any
	// Delay is how long from now the job is due: up to ten years. RunAt is when; in the past means
	// now. Give one of them, or neither for now.
	Delay time.Duration
	RunAt time.Time
	// ID makes the push idempotent for the dedup window: a job with an ID that is known is not
	// taken in again. Default: a random one, so that a push whose answer was lost can be repeated.
	ID string
	// MaxAttempts is 1 to 100. With 1, the default, the job is done once SQS has it; with more it
	// awaits its consumer's ack.
	MaxAttempts int
	// AckTimeout is how long SQS and the consumer may take for one attempt before the next one is
	// scheduled.
	AckTimeout time.Duration
	// Backoff spaces the attempts. Nil is the API's default.
	Backoff *Backoff
	// ExpiresAt drops the job when it was not sent by then. Zero is never.
	ExpiresAt time.Time
	// Group is the message group of a FIFO queue.
	Group string
	// Headers become message attributes: up to 8.
	Headers map[string]string
	// Durable writes the job to DynamoDB before it is acknowledged, so that a loss of Redis does
	// not lose it.
	Durable bool
}

// Backoff is an exponential backoff with full jitter. Zero values are the API's defaults.
type Backoff struct {
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64
	NoJitter   bool
}

// Receipt says where a pushed job is.
type Receipt struct {
	ID      string    `json:"id"`
	Queue   string    `json:"queue"`
	State   JobState  `json:"state"`
	RunAt   time.Time `json:"run_at"`
	Attempt int       `json:"attempt"`
	// Duplicate says that the ID was known, and nothing was taken in; PayloadDiffers that it was
	// known with another payload.
	Duplicate      bool `json:"duplicate"`
	PayloadDiffers bool `json:"payload_differs,omitempty"`
	// Degraded says what stood in while a store was down, for example "enqueue-outbox".
	Degraded string `json:"degraded,omitempty"`
}

type jobBody struct {
	Payload     json.RawMessage   `json:"payload"`
	Delay       *int64            `json:"delay_ms,omitzero"`
	RunAt       string            `json:"run_at,omitzero"`
	ID          string            `json:"id,omitzero"`
	MaxAttempts int               `json:"max_attempts,omitzero"`
	AckTimeout  int64             `json:"ack_timeout_ms,omitzero"`
	Backoff     *backoffBody      `json:"backoff,omitzero"`
	ExpiresAt   string            `json:"expires_at,omitzero"`
	Group       string            `json:"group,omitzero"`
	Headers     map[string]string `json:"headers,omitzero"`
	Durability  string            `json:"durability,omitzero"`
}

type backoffBody struct {
	Initial    int64   `json:"initial_ms,omitzero"`
	Max        int64   `json:"max_ms,omitzero"`
	Multiplier float64 `json:"multiplier,omitzero"`
	Jitter     *bool   `json:"jitter,omitzero"`
}

func (j Job) body() (jobBody, error) {
	text, err := payload(j.Payload)
	if err != nil {
		return jobBody{}, err
	}
	b := jobBody{
		Payload: text, RunAt: instant(j.RunAt), ID: j.ID, MaxAttempts: j.MaxAttempts,
		AckTimeout: ceilMillis(j.AckTimeout),
		ExpiresAt:  instant(j.ExpiresAt), Group: j.Group, Headers: j.Headers,
	}
	if j.Delay != 0 {
		ms := ceilMillis(j.Delay)
		b.Delay = &ms
	}
	if j.Durable {
		b.Durability = "dynamodb"
	}
	if j.Backoff != nil {
		b.Backoff = &backoffBody{Initial: ceilMillis(j.Backoff.Initial), Max: ceilMillis(j.Backoff.Max),
			Multiplier: j.Backoff.Multiplier}
		if j.Backoff.NoJitter {
			b.Backoff.Jitter = new(bool)
		}
	}
	return b, nil
}

// Push takes a job in. When its answer is lost it is pushed again under the same ID, which never
// makes a second job.
//
// Errors: [ErrQueueNotFound], [ErrInvalidRequest], [ErrPayloadTooLarge], [ErrStoreUnavailable].
func (q *Queue) Push(ctx context.Context, j Job) (Receipt, error) {
	op := fmt.Sprintf("pushing a job to the queue %q", q.name)
	if err := checkName(op, "queue", q.name); err != nil {
		return Receipt{}, err
	}
	body, err := j.body()
	if err != nil {
		return Receipt{}, fmt.Errorf("error %s: %w", op, err)
	}
	request := call{op: op, method: "POST", path: pathTo("v1", "queues", q.name, "jobs"), body: body}
	made := ""
	if j.ID == "" {
		made = rand.Text()
		request.header = map[string]string{"Idempotency-Key": made}
	}
	var out Receipt
	request.out = &out
	r, err := q.client.do(ctx, request)
	if err != nil {
		return Receipt{ID: j.ID + made, Queue: q.name}, err
	}
	out.Degraded = r.header.Get("Sluice-Degraded")
	if made != "" && r.uncertain {
		out.Duplicate = false // nobody else knows the ID: the duplicate is our own repetition
	}
	return out, nil
}

// Pushed is what became of one job of a batch.
type Pushed struct {
	Receipt
	Err error
}

const (
	maxBatch = 500
	// maxBatchBytes keeps a request under the API's limit of 1 MiB.
	maxBatchBytes = 1<<20 - 4096
)

// PushBatch takes any number of jobs in, by up to 500 and 1 MiB in one request. Each job is taken
// in for itself: the results are in the order of the jobs, and have each the job's ID, with which
// it can be pushed again.
//
// The error joins those of whole requests; a job that was refused has its error only in its result.
func (q *Queue) PushBatch(ctx context.Context, jobs []Job) ([]Pushed, error) {
	op := fmt.Sprintf("pushing jobs to the queue %q", q.name)
	if err := checkName(op, "queue", q.name); err != nil {
		return nil, err
	}
	results := make([]Pushed, len(jobs))
	b := &pushBatch{queue: q, op: op, results: results}
	for i, j := range jobs {
		own := j.ID == ""
		if own {
			j.ID = rand.Text()
		}
		results[i].Receipt = Receipt{ID: j.ID, Queue: q.name}
		body, err := j.body()
		if err != nil {
			results[i].Err = fmt.Errorf("error %s: job %d: %w", op, i, err)
			continue
		}
		text, err := encodeJSON(body)
		if err != nil {
			results[i].Err = fmt.Errorf("error %s: job %d: %w", op, i, err)
			continue
		}
		b.add(ctx, i, own, text)
	}
	b.flush(ctx)
	return results, errors.Join(b.errs...)
}

// pushBatch gathers jobs into requests.
type pushBatch struct {
	queue   *Queue
	op      string
	results []Pushed

	texts []json.RawMessage
	at    []int  // where each of them is in results
	own   []bool // whether its ID was made here
	size  int
	errs  []error
}

func (b *pushBatch) add(ctx context.Context, at int, own bool, text json.RawMessage) {
	if len(b.texts) == maxBatch || len(b.texts) > 0 && b.size+len(text) > maxBatchBytes {
		b.flush(ctx)
	}
	b.texts, b.at, b.own, b.size = append(b.texts, text), append(b.at, at), append(b.own, own), b.size+len(text)+1
}

func (b *pushBatch) flush(ctx context.Context) {
	if len(b.texts) == 0 {
		return
	}
	var out struct {
		Results []struct {
			Receipt
			Error *problem `json:"error"`
		} `json:"results"`
	}
	r, err := b.queue.client.do(ctx, call{
		op: b.op, method: "POST", path: pathTo("v1", "queues", b.queue.name, "jobs", "batch"),
		body: map[string]any{"jobs": b.texts}, out: &out,
	})
	if err == nil && len(out.Results) != len(b.texts) {
		err = &Error{Op: b.op, Code: CodeUnexpected, Status: r.status,
			Detail: fmt.Sprintf("%d results for %d jobs", len(out.Results), len(b.texts))}
	}
	if err != nil {
		b.errs = append(b.errs, err)
	}
	for k, at := range b.at {
		into := &b.results[at]
		switch {
		case err != nil:
			into.Err = err
		case out.Results[k].Error != nil:
			into.Err = out.Results[k].Error.asError(fmt.Sprintf("%s: job %d", b.op, at), nil)
		default:
			into.Receipt = out.Results[k].Receipt
			into.Degraded = r.header.Get("Sluice-Degraded")
			if b.own[k] && r.uncertain {
				into.Duplicate = false
			}
		}
	}
	b.texts, b.at, b.own, b.size = nil, nil, nil, 0
}
