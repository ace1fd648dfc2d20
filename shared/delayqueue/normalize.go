package delayqueue

import (
	"crypto/rand"
	"math"
	"strings"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

const defaultAckTime = 30 * time.Second

// Normalize returns j with defaults in its unset fields, and with times and durations rounded up to
// whole milliseconds. [Queues.Enqueue] calls it. Normalize is idempotent.
//
// The error is [ErrPayloadTooLarge] or an [ErrInvalid] that lists every invalid field by its name
// in the HTTP API, such as "ack_timeout_ms".
func (j Job) Normalize() (Job, error) {
	if err := checkPayloadSize(j.Payload); err != nil {
		return j, err
	}
	n := j
	var f fault.Fields
	checkPayload(&f, n.Payload)
	n.normalizeTimes(&f)

	if n.ID == "" {
		n.ID = rand.Text()
	}
	f.CheckName("id", n.ID)

	if n.MaxAttempts == 0 {
		n.MaxAttempts = 1
	}
	if n.MaxAttempts < 1 || n.MaxAttempts > MaxAttempts {
		f.Add("max_attempts", "must be 1 to %d", MaxAttempts)
	}

	if n.AckTimeout == 0 {
		n.AckTimeout = defaultAckTime
	}
	n.AckTimeout = ceilMillisecond(n.AckTimeout)
	if n.AckTimeout < MinAckTimeout || n.AckTimeout > MaxAckTimeout {
		f.Add("ack_timeout_ms", "must be %d to %d", MinAckTimeout.Milliseconds(), MaxAckTimeout.Milliseconds())
	}

	n.Backoff.normalize(&f)
	checkGroup(&f, n.Group)
	checkHeaders(&f, n.Headers)
	if !validTraceparent(n.Trace) {
		n.Trace = ""
	}

	if err := f.Err(); err != nil {
		return j, err
	}
	return n, nil
}

func (j *Job) normalizeTimes(f *fault.Fields) {
	if !j.RunAt.IsZero() && j.Delay != 0 {
		f.Add("run_at", "must not be combined with delay_ms")
	}
	j.Delay = normalizeDelay(f, j.Delay)
	j.RunAt = normalizeInstant(f, "run_at", j.RunAt)
	j.ExpiresAt = normalizeInstant(f, "expires_at", j.ExpiresAt)
	if !j.RunAt.IsZero() && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(j.RunAt) {
		f.Add("expires_at", "must be after run_at, otherwise the job is never sent")
	}
}

// normalizeDelay rounds d up to a whole millisecond. If d is out of range, it adds an error to f.
func normalizeDelay(f *fault.Fields, d time.Duration) time.Duration {
	d = ceilMillisecond(d)
	if d < 0 || d > MaxDelay {
		f.Add("delay_ms", "must be 0 to %d (ten years)", MaxDelay.Milliseconds())
	}
	return d
}

// normalizeInstant rounds t up to a whole millisecond. If t is more than MaxDelay from now, it adds
// an error to f. It does not change the zero time, which means "not set".
func normalizeInstant(f *fault.Fields, field string, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	t = ceilInstant(t)
	if t.After(ceilInstant(time.Now().Add(MaxDelay))) {
		f.Add(field, "must be within ten years")
	}
	return t
}

func (b *Backoff) normalize(f *fault.Fields) {
	if *b == (Backoff{}) {
		*b = DefaultBackoff()
		return
	}
	standard := DefaultBackoff()

	if b.Initial == 0 {
		b.Initial = standard.Initial
	}
	if b.Initial = ceilMillisecond(b.Initial); b.Initial < time.Millisecond || b.Initial > MaxBackoff {
		f.Add("backoff.initial_ms", "must be 1 to %d", MaxBackoff.Milliseconds())
	}

	switch b.Max = ceilMillisecond(b.Max); {
	case b.Max == 0:
		b.Max = max(standard.Max, b.Initial)
	case b.Max < time.Millisecond || b.Max > MaxBackoff:
		f.Add("backoff.max_ms", "must be 1 to %d", MaxBackoff.Milliseconds())
	case b.Max < b.Initial:
		f.Add("backoff.max_ms", "must be at least initial_ms")
	}

	if b.Multiplier == 0 {
		b.Multiplier = standard.Multiplier
	}
	if b.Multiplier = math.Round(b.Multiplier*1000) / 1000; !(b.Multiplier >= 1 && b.Multiplier <= MaxMultiplier) {
		f.Add("backoff.multiplier", "must be 1 to %d", MaxMultiplier) // the condition also rejects NaN
	}
}

func checkGroup(f *fault.Fields, group string) {
	unprintable := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(group) > MaxGroup || strings.ContainsFunc(group, unprintable) {
		f.Add("group", "must be at most %d printable ASCII characters without spaces", MaxGroup)
	}
}

// QueueType is the type of the SQS queue to which a queue's jobs are sent.
type QueueType int

// The queue types.
const (
	Standard QueueType = iota
	FIFO
)

// QueueTypeOf returns the type of the SQS queue at url.
func QueueTypeOf(url string) QueueType {
	if strings.HasSuffix(url, ".fifo") {
		return FIFO
	}
	return Standard
}

// CheckFor rejects a job that cannot be sent to an SQS queue of type t. A standard queue allows no
// group, and a FIFO queue allows no ID longer than MaxFIFOID characters. Normalize does not check
// this, because a Job does not contain the type of its SQS queue. The error is an [ErrInvalid] that
// lists every invalid field.
func (j *Job) CheckFor(t QueueType) error {
	var f fault.Fields
	if t == Standard && j.Group != "" {
		f.Add("group", "is only for FIFO queues")
	}
	if t == FIFO && len(j.ID) > MaxFIFOID {
		f.Add("id", "must be at most %d characters on a FIFO queue: the deduplication id contains it", MaxFIFOID)
	}
	return f.Err()
}

// ceilMillisecond rounds d up to a whole millisecond.
func ceilMillisecond(d time.Duration) time.Duration {
	return instant.Milliseconds(instant.CeilMilliseconds(d))
}

// ceilInstant rounds t up to a whole millisecond, in UTC.
func ceilInstant(t time.Time) time.Time { return fromUnixMS(unixMS(t)) }
