package main

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqstext"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// newJob is a job as a caller sends it.
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

const (
	maxBackoff    = 7 * 24 * time.Hour
	maxMultiplier = 100
	maxGroup      = 128
	maxFIFOID     = 116 // leaves room for attempt and redrives in SQS' 128
	maxHeaderSize = 4096
)

// parse turns the body into a job. Every bad field is noted.
func (b *newJob) parse(f *fault.Fields, fifo bool) delayqueue.Job {
	j := delayqueue.Job{Payload: b.Payload, MaxAttempts: 1, Backoff: delayqueue.DefaultBackoff(), Group: b.Group,
		Headers: b.Headers}
	if b.Payload == nil {
		f.Add("payload", "is required; null counts")
	}
	checkText(f, b.Payload)
	b.parseTime(f, &j)
	if j.ID = rand.Text(); b.ID != nil {
		j.ID = *b.ID
		f.CheckName("id", j.ID)
		if fifo && len(j.ID) > maxFIFOID {
			f.Add("id", "must be at most %d characters on a FIFO queue, where SQS' deduplication id is made of it",
				maxFIFOID)
		}
	}
	if b.MaxAttempts != nil {
		if j.MaxAttempts = *b.MaxAttempts; j.MaxAttempts < 1 || j.MaxAttempts > delayqueue.MaxAttempts {
			f.Add("max_attempts", "must be 1 to %d", delayqueue.MaxAttempts)
		}
	}
	if b.AckTimeout != nil {
		j.AckTimeout = instant.Milliseconds(*b.AckTimeout)
		if j.AckTimeout < delayqueue.MinAckTimeout || j.AckTimeout > delayqueue.MaxAckTimeout {
			f.Add("ack_timeout_ms", "must be %d to %d", delayqueue.MinAckTimeout.Milliseconds(),
				delayqueue.MaxAckTimeout.Milliseconds())
		}
	}
	if b.Backoff != nil {
		b.Backoff.apply(f, &j.Backoff)
	}
	checkGroup(f, b.Group, fifo)
	checkHeaders(f, b.Headers)
	switch b.Durability {
	case "", "redis":
	case "dynamodb":
		j.Durable = true
	default:
		f.Add("durability", `must be "redis" or "dynamodb"`)
	}
	return j
}

func (b *newJob) parseTime(f *fault.Fields, j *delayqueue.Job) {
	if b.DelayMS != nil && b.RunAt != nil {
		f.Add("run_at", "excludes delay_ms: give one of them")
	}
	if b.DelayMS != nil {
		j.Delay = checkDelay(f, "delay_ms", *b.DelayMS)
	}
	if b.RunAt != nil {
		j.RunAt = checkInstant(f, "run_at", *b.RunAt)
	}
	if b.ExpiresAt != nil {
		j.ExpiresAt = checkInstant(f, "expires_at", *b.ExpiresAt)
	}
}

func checkDelay(f *fault.Fields, field string, ms int64) time.Duration {
	if ms < 0 || ms > delayqueue.MaxDelay.Milliseconds() {
		f.Add(field, "must be 0 to %d (ten years)", delayqueue.MaxDelay.Milliseconds())
	}
	return instant.Milliseconds(ms)
}

// checkInstant parses an instant that is at most ten years from now, and never the zero time: that
// means "not given" to the domain.
func checkInstant(f *fault.Fields, field, text string) time.Time {
	at, err := instant.Parse(text)
	switch {
	case err != nil:
		f.Add(field, "%s", err.Error())
	case at.After(time.Now().Add(delayqueue.MaxDelay)):
		f.Add(field, "must be within ten years")
	}
	return later(at, time.UnixMilli(1).UTC())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (b *backoffBody) apply(f *fault.Fields, to *delayqueue.Backoff) {
	if b.InitialMS != nil {
		if to.Initial = instant.Milliseconds(*b.InitialMS); to.Initial < time.Millisecond || to.Initial > maxBackoff {
			f.Add("backoff.initial_ms", "must be 1 to %d", maxBackoff.Milliseconds())
		}
	}
	if b.MaxMS != nil {
		if to.Max = instant.Milliseconds(*b.MaxMS); to.Max < time.Millisecond || to.Max > maxBackoff {
			f.Add("backoff.max_ms", "must be 1 to %d", maxBackoff.Milliseconds())
		}
	} else {
		to.Max = max(to.Max, to.Initial)
	}
	if to.Max < to.Initial {
		f.Add("backoff.max_ms", "must be at least initial_ms")
	}
	if b.Multiplier != nil {
		if to.Multiplier = *b.Multiplier; !(to.Multiplier >= 1 && to.Multiplier <= maxMultiplier) {
			f.Add("backoff.multiplier", "must be 1 to %d", maxMultiplier)
		}
	}
	if b.Jitter != nil {
		to.Jitter = *b.Jitter
	}
}

func checkGroup(f *fault.Fields, group string, fifo bool) {
	switch {
	case group == "":
	case !fifo:
		f.Add("group", "is only for FIFO queues")
	case len(group) > maxGroup || strings.ContainsFunc(group, func(r rune) bool { return r <= ' ' || r > '~' }):
		f.Add("group", "must be at most %d printable ASCII characters without spaces", maxGroup)
	}
}

// checkHeaders refuses what SQS would not take as a message attribute.
func checkHeaders(f *fault.Fields, headers map[string]string) {
	if len(headers) > delayqueue.MaxHeaders {
		f.Add("headers", "must be at most %d", delayqueue.MaxHeaders)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		size += len(name) + len(headers[name])
		switch {
		case sqstext.Reserved(name):
			f.Add("headers."+name, "has a reserved prefix")
		case !sqstext.Name(name):
			f.Add("headers."+name,
				"must be a name of 1 to %d letters, digits and - _ . without a . at its ends or two in a row",
				sqstext.MaxName)
		case !sqstext.Text(headers[name]):
			f.Add("headers."+name, "must be text that is not empty and has no control characters")
		}
	}
	if size > maxHeaderSize {
		f.Add("headers", "must be at most %d bytes together", maxHeaderSize)
	}
}

// tooLarge tells whether the payload is over its limit: an error of its own, not of a field.
func (b *newJob) tooLarge() error { return checkPayload(b.Payload) }

func checkPayload(payload json.RawMessage) error {
	if len(payload) > delayqueue.MaxPayload {
		return fault.New(fault.PayloadTooLarge,
			"the payload is over %d bytes of JSON: keep what is large elsewhere and send where it is",
			delayqueue.MaxPayload)
	}
	return nil
}

// checkText refuses what SQS would not take as a message's body: better now than when the job is
// due.
func checkText(f *fault.Fields, payload json.RawMessage) {
	if payload != nil && !sqstext.Text(string(payload)) {
		f.Add("payload", `has a character that SQS does not take, U+FFFE or U+FFFF: write it as \ufffe or \uffff`)
	}
}

// identify lets the header Idempotency-Key stand for an id that the body does not give.
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
