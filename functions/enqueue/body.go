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

// newJob is the JSON of a job to enqueue. [delayqueue.Job.Normalize] has the bounds and the
// defaults.
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

// parse returns the normalized job of a request. The error lists f and every invalid field.
func (b *newJob) parse(f fault.Fields, queue delayqueue.QueueType, traceparent string) (delayqueue.Job, error) {
	j := b.job(&f)
	j.Trace = traceparent

	if unsuitable, ok := errors.AsType[*fault.Error](j.CheckFor(queue)); ok {
		f = append(f, unsuitable.Fields...)
	}

	normalized, err := j.Normalize()
	return normalized, f.Join(err)
}

// job maps the JSON to a job.
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
		f.CheckName("id", j.ID) // the domain replaces an empty ID
	}

	if b.DelayMS != nil && b.RunAt != nil {
		f.Add("run_at", "excludes delay_ms: give one of them")
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

// explicit returns the value of an optional member, and 0 if it is absent. The domain gives a 0 its
// default, so an explicit 0 becomes -1, which the domain refuses with the range.
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

// parseInstant parses an optional instant. The domain reads the zero time as "not set", so an
// explicit instant before 1970 becomes the start of 1970: both are in the past.
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

// identify applies the header Idempotency-Key, which is the ID of a job whose body has none.
func (b *newJob) identify(f *fault.Fields, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	switch {
	case key == "":
	case b.ID == nil:
		b.ID = &key
	case *b.ID != key:
		f.Add("Idempotency-Key", "differs from the id in the body: give one of them")
	}
}
