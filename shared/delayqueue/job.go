package delayqueue

import (
	"encoding/json"
	"math"
	"time"
)

// State is the state of a job. A job is in exactly one.
type State string

// The states. Dispatched, Succeeded, Canceled and Expired are final; a job in one of them is kept
// for [Config.DedupWindow].
const (
	// Scheduled: the job waits for its due time, or is due and waits for a dispatcher.
	Scheduled State = "scheduled"
	// Dispatching: a dispatcher has claimed the job and holds its lease.
	Dispatching State = "dispatching"
	// Dispatched: SQS has accepted the only attempt of a job that needs no acknowledgement.
	Dispatched State = "dispatched"
	// AwaitingAck: SQS has accepted an attempt, and the consumer has not acknowledged it yet.
	AwaitingAck State = "awaiting_ack"
	// Succeeded: the consumer has acknowledged an attempt.
	Succeeded State = "succeeded"
	// Canceled: Cancel came before the claim.
	Canceled State = "canceled"
	// Expired: the job was claimed after its ExpiresAt and was not sent.
	Expired State = "expired"
	// Dead: every attempt failed, or SQS can never accept the job. A dead job is kept for
	// [Config.DeadRetention] and can be redriven.
	Dead State = "dead"
)

// Valid reports whether s is one of the states.
func (s State) Valid() bool {
	switch s {
	case Scheduled, Dispatching, Dispatched, AwaitingAck, Succeeded, Canceled, Expired, Dead:
		return true
	default:
		return false
	}
}

// Limits of jobs and calls.
const (
	// MaxDelay is the longest Delay, and how far in the future RunAt and ExpiresAt may be: ten
	// years.
	MaxDelay = 3653 * 24 * time.Hour
	// MaxPayload is the size limit of a payload in bytes of JSON.
	MaxPayload = 256 << 10
	// MaxPayloadDepth is how deep arrays and objects of a payload may be nested.
	MaxPayloadDepth = 256
	// MaxAttempts is the highest [Job.MaxAttempts].
	MaxAttempts = 100
	// MinAckTimeout and MaxAckTimeout bound [Job.AckTimeout]. SQS can hide a message for 12 hours
	// at most.
	MinAckTimeout = time.Second
	MaxAckTimeout = 12 * time.Hour
	// MaxBackoff is the longest [Backoff.Initial] and [Backoff.Max].
	MaxBackoff = 7 * 24 * time.Hour
	// MaxMultiplier is the highest [Backoff.Multiplier].
	MaxMultiplier = 100
	// MaxHeaders is how many headers a job may have.
	MaxHeaders = 8
	// MaxHeaderBytes is the size limit of all names and values of a job's headers together.
	MaxHeaderBytes = 4096
	// MaxGroup is the length limit of [Job.Group].
	MaxGroup = 128
	// MaxFIFOID is the length limit of the ID of a job for a FIFO queue: the ID, the attempt and
	// the number of redrives make up the deduplication ID, for which SQS allows 128 characters.
	MaxFIFOID = 116
	// MaxBatch is how many jobs one Claim or Maintain processes, and how many IDs one Redrive
	// accepts, at most.
	MaxBatch = 500
	// MaxPage is how many jobs a page of List has at most.
	MaxPage = 200
	// MaxRedrive is how many jobs one Redrive moves at most.
	MaxRedrive = 10_000
	// MaxError is how many bytes of an attempt's error are kept.
	MaxError = 1024
)

// Job is a payload to send to a queue when it is due. [Job.Normalize] has the defaults and bounds.
type Job struct {
	// ID identifies the job in its queue: while a job of this ID exists, enqueuing it again changes
	// nothing. Defaults to a random ID.
	ID string
	// Payload is valid JSON of up to MaxPayload bytes, nested up to MaxPayloadDepth deep. Required.
	Payload json.RawMessage
	// RunAt is the due time. The zero time means Delay from now, by Redis' clock; a time in the
	// past means now. It is rounded up to a whole millisecond, and is at most MaxDelay from now.
	RunAt time.Time
	// Delay is the time until the job is due, rounded up to a whole millisecond: 0 to MaxDelay. It
	// excludes RunAt.
	Delay time.Duration
	// MaxAttempts is how many times the job is sent until the consumer acknowledges it: 1 to 100.
	// Defaults to 1, which needs no acknowledgement.
	MaxAttempts int
	// AckTimeout is how long an attempt waits for its acknowledgement after SQS has accepted it:
	// MinAckTimeout to MaxAckTimeout. Defaults to 30 s.
	AckTimeout time.Duration
	// Backoff is the delay between failed attempts. The zero value means DefaultBackoff.
	Backoff Backoff
	// ExpiresAt is the time from which the job is not sent. The zero time means never. It must be
	// after RunAt, and is at most MaxDelay from now.
	ExpiresAt time.Time
	// Group is the message group on a FIFO queue: up to MaxGroup printable ASCII characters without
	// spaces. Defaults to a group of the job's own.
	Group string
	// Headers become attributes of the SQS message: up to MaxHeaders, and MaxHeaderBytes together.
	Headers map[string]string
	// Trace is the W3C traceparent (https://www.w3.org/TR/trace-context/) that the message carries.
	// Normalize drops an invalid one.
	Trace string
	// Durable reports that the outbox keeps the job as well, until it is sent.
	Durable bool
}

// Backoff is the delay before attempt n+1, after attempt n has failed: Initial × Multiplier^(n-1),
// but at most Max. With Jitter it is a random part of that ("full jitter", AWS Architecture Blog,
// "Exponential Backoff and Jitter", 2015).
type Backoff struct {
	// Initial is the delay after the first attempt: 1 ms to MaxBackoff. Defaults to 1 s.
	Initial time.Duration
	// Max is the longest delay: Initial to MaxBackoff. Defaults to 1 h, or to Initial if that is
	// longer.
	Max time.Duration
	// Multiplier is the growth of the delay, to three decimal places: 1 to MaxMultiplier. Defaults
	// to 2.
	Multiplier float64
	// Jitter makes each delay random. It has no default of its own: it is true in DefaultBackoff,
	// and false in a Backoff that sets another field only.
	Jitter bool
}

// DefaultBackoff returns a backoff of 1 s that doubles up to 1 h, with jitter.
func DefaultBackoff() Backoff {
	return Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}
}

// thousandths returns the multiplier as a record holds it.
func (b *Backoff) thousandths() int64 { return int64(math.Round(b.Multiplier * 1000)) }

// Enqueued describes the job that an ID refers to after it was enqueued.
type Enqueued struct {
	ID      string
	State   State
	RunAt   time.Time
	Attempt int
	// Duplicate reports that a job of this ID already existed; nothing was enqueued.
	Duplicate bool
	// Differs reports that the existing job has another payload, group or headers.
	Differs bool
	// Durable reports that the outbox keeps the existing job as well.
	Durable bool
}

// Result is the outcome of one job of [Queues.Enqueue].
type Result struct {
	// Job is the job as it was enqueued, with its defaults, or as it was given if it is invalid.
	Job      Job
	Enqueued Enqueued
	// Err is why the job was not enqueued: [ErrInvalid], [ErrPayloadTooLarge] or [ErrUnavailable].
	// After ErrUnavailable the job may be stored although the answer was lost; enqueuing it again
	// under the same ID is safe.
	Err error
}

// Info is the current state of a job.
type Info struct {
	ID    string
	State State
	// RunAt is when the current attempt is due, or was.
	RunAt time.Time
	// DispatchedAt is when SQS accepted the latest attempt; the zero time if it has accepted none.
	DispatchedAt time.Time
	// Attempt is the number of the current attempt, or of the latest while the next one is
	// scheduled; 0 before the first.
	Attempt     int
	MaxAttempts int
	// LastError is why the latest attempt failed, or "".
	LastError string
	Payload   json.RawMessage
	Group     string
	Headers   map[string]string
	// ExpiresAt is the zero time if the job never expires.
	ExpiresAt time.Time
	// Durable reports that the outbox keeps the job as well.
	Durable bool
}
