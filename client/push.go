package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"
)

// Job is a job to push. Every field is optional.
type Job struct {
	// Payload is encoded as JSON and becomes the body of the SQS message: up to 256 KiB. Nil is
	// sent as JSON's null, and a json.RawMessage is sent unchanged.
	Payload any
	// Delay makes the job due after this duration: up to ten years. Set at most one of Delay and
	// RunAt. If neither is set, the job is due now.
	Delay time.Duration
	// RunAt makes the job due at this time. A time in the past means now.
	RunAt time.Time
	// ID makes the push idempotent for the deduplication window: if the ID already exists, Push
	// returns the existing job and enqueues nothing. Defaults to a random ID, which all retries of
	// one call use.
	ID string
	// MaxAttempts is 1 to 100. With 1, the default, the job is finished when SQS accepts it. With
	// more attempts, the consumer must acknowledge each attempt.
	MaxAttempts int
	// AckTimeout is the maximum time from the moment at which SQS accepts an attempt until the
	// consumer acknowledges the attempt. After this time, Sluice schedules the next attempt. Zero
	// means the API's default.
	AckTimeout time.Duration
	// Backoff sets the wait between attempts. Nil means the API's default.
	Backoff *Backoff
	// ExpiresAt is the time at which Sluice drops the job if it has not yet sent the job to SQS.
	// The zero time means never.
	ExpiresAt time.Time
	// Group is the message group, for a FIFO queue.
	Group string
	// Headers become message attributes: up to 8.
	Headers map[string]string
	// Durable writes the job to DynamoDB before Push returns, so that it survives a loss of Redis.
	Durable bool
}

// Backoff is an exponential backoff with full jitter. A zero field means the API's default.
type Backoff struct {
	// Initial is the maximum wait after the first attempt.
	Initial time.Duration
	// Max is the maximum wait after any attempt.
	Max time.Duration
	// Multiplier is the factor by which the wait grows with each attempt.
	Multiplier float64
	// If NoJitter is set, each wait is exactly the computed time instead of a random part of it.
	NoJitter bool
}

// Receipt describes a pushed job.
type Receipt struct {
	ID    string   `json:"id"`
	Queue string   `json:"queue"`
	State JobState `json:"state"`
	// RunAt is the time at which the job is due.
	RunAt   time.Time `json:"run_at"`
	Attempt int       `json:"attempt"`
	// Duplicate reports that a job with this ID already existed, and nothing was enqueued.
	Duplicate bool `json:"duplicate"`
	// PayloadDiffers reports that the existing job has a different payload.
	PayloadDiffers bool `json:"payload_differs,omitempty"`
	// Degraded names the fallback that the API used because a store was unavailable, for example
	// "enqueue-outbox"; "" if it used none.
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
	text, err := encodePayload(j.Payload)
	if err != nil {
		return jobBody{}, err
	}

	b := jobBody{
		Payload:     text,
		RunAt:       instant(j.RunAt),
		ID:          j.ID,
		MaxAttempts: j.MaxAttempts,
		AckTimeout:  ceilMillis(j.AckTimeout),
		Backoff:     j.Backoff.body(),
		ExpiresAt:   instant(j.ExpiresAt),
		Group:       j.Group,
		Headers:     j.Headers,
	}
	if j.Delay != 0 {
		b.Delay = new(ceilMillis(j.Delay))
	}
	if j.Durable {
		b.Durability = "dynamodb"
	}
	return b, nil
}

func (b *Backoff) body() *backoffBody {
	if b == nil {
		return nil
	}
	out := &backoffBody{Initial: ceilMillis(b.Initial), Max: ceilMillis(b.Max), Multiplier: b.Multiplier}
	if b.NoJitter {
		out.Jitter = new(bool)
	}
	return out
}

// Push enqueues a job. If the answer is lost, Push retries with the same ID, so that it never
// enqueues a second job. If Push fails, the caller can retry with [Receipt.ID] as [Job.ID].
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

	var out Receipt
	request := call{op: op, method: "POST", path: pathTo("v1", "queues", q.name, "jobs"), body: body, out: &out}
	generated := ""
	if j.ID == "" {
		generated = rand.Text()
		request.header = map[string]string{"Idempotency-Key": generated}
	}

	r, err := q.client.do(ctx, request)
	if err != nil {
		return Receipt{ID: j.ID + generated, Queue: q.name}, err
	}
	out.Degraded = r.header.Get("Sluice-Degraded")
	if generated != "" && r.uncertain {
		out.Duplicate = false // an earlier attempt of this call enqueued the job
	}
	return out, nil
}
