package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// newJob is the JSON form of a job to enqueue. [delayqueue.Job.Normalize] sets the defaults and
// checks the ranges.
type newJob struct {
	Payload     json.RawMessage   `json:"payload"`
	DelayMS     *int64            `json:"delay_ms"`
	RunAt       *string           `json:"run_at"`
	ID          *string           `json:"id"`
	MaxAttempts *int              `json:"max_attempts"`
	AckTimeout  *int64            `json:"ack_timeout_ms"`
	Backoff     *backoffBody      `json:"backoff"`
	ExpiresAt   *string           `json:"expires_at"`
	Group       string            `json:"group"`
	Headers     map[string]string `json:"headers"`
	Durability  string            `json:"durability"`
}

type backoffBody struct {
	InitialMS  *int64   `json:"initial_ms"`
	MaxMS      *int64   `json:"max_ms"`
	Multiplier *float64 `json:"multiplier"`
	Jitter     *bool    `json:"jitter"`
}

// parse returns the normalized job of a request. Its error lists the invalid fields in f, which
// the caller has already found, and every invalid field of the body.
func (b *newJob) parse(f fault.Fields, queue delayqueue.QueueType, traceparent string) (delayqueue.Job, error) {
	j := b.job(&f)
	j.Trace = traceparent

	if unsuitable, ok := errors.AsType[*fault.Error](j.CheckFor(queue)); ok {
		f = append(f, unsuitable.Fields...)
	}

	normalized, err := j.Normalize()
	return normalized, f.Join(err)
}

// job converts the JSON to a job, and adds invalid fields to f.
func (b *newJob) job(f *fault.Fields) delayqueue.Job {
	j := delayqueue.Job{
		Payload:     b.Payload,
		MaxAttempts: explicit(b.MaxAttempts),
		AckTimeout:  instant.Milliseconds(explicit(b.AckTimeout)),
		Backoff:     b.Backoff.backoff(),
		Group:       b.Group,
		Headers:     b.Headers,
	}
	if b.ID != nil {
		j.ID = *b.ID
		f.CheckName("id", j.ID) // delayqueue would replace an empty ID with a generated one
	}

	if b.DelayMS != nil && b.RunAt != nil {
		f.Add("run_at", "must not be combined with delay_ms")
	}
	if b.DelayMS != nil {
		j.Delay = instant.Milliseconds(*b.DelayMS)
	}
	j.RunAt = parseInstant(f, "run_at", b.RunAt)
	j.ExpiresAt = parseInstant(f, "expires_at", b.ExpiresAt)

	switch b.Durability {
	case "", "redis":
	case "dynamodb":
		j.Durable = true
	default:
		f.Add("durability", `must be "redis" or "dynamodb"`)
	}
	return j
}

func (b *backoffBody) backoff() delayqueue.Backoff {
	backoff := delayqueue.DefaultBackoff()
	if b == nil {
		return backoff
	}
	if b.InitialMS != nil {
		backoff.Initial = instant.Milliseconds(explicit(b.InitialMS))
	}
	backoff.Max = instant.Milliseconds(explicit(b.MaxMS))
	if b.Multiplier != nil {
		backoff.Multiplier = explicit(b.Multiplier)
	}
	if b.Jitter != nil {
		backoff.Jitter = *b.Jitter
	}
	return backoff
}

// explicit returns the value of an optional member, or 0 if it is absent. Package delayqueue
// replaces 0 with the default. An explicit 0 therefore becomes -1, which delayqueue refuses as out
// of range.
func explicit[T int | int64 | float64](value *T) T {
	switch {
	case value == nil:
		return 0
	case *value == 0:
		return -1
	default:
		return *value
	}
}

// parseInstant parses an optional RFC 3339 time. Package delayqueue treats the zero time as "not
// set". A time before 1970 therefore becomes the start of 1970, which is in the past, too.
func parseInstant(f *fault.Fields, field string, text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	at, err := instant.Parse(*text)
	if err != nil {
		f.Add(field, "%s", err.Error())
		return time.Time{}
	}
	if epoch := time.UnixMilli(0).UTC(); at.Before(epoch) {
		return epoch
	}
	return at
}

// identify uses the value of the header Idempotency-Key as the job's ID if the body has no ID. If
// the header and the body have different IDs, identify adds an error to f.
func (b *newJob) identify(f *fault.Fields, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	switch {
	case key == "":
	case b.ID == nil:
		b.ID = &key
	case *b.ID != key:
		f.Add("Idempotency-Key", "differs from the id in the body: give only one of them")
	}
}
