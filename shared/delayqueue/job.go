package delayqueue

import (
	"encoding/json"
	"math"
	"time"
)

// State is the state of a job. A job has exactly one state.
type State string

// The states. Dispatched, Succeeded, Canceled and Expired are final; a job in a final state is kept
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
	// Canceled: the job was canceled before a dispatcher claimed it.
	Canceled State = "canceled"
	// Expired: ExpiresAt passed before a dispatcher claimed the job. It was not sent.
	Expired State = "expired"
	// Dead: every attempt failed, SQS can never accept the job, or [Config.MaxLapses] leases lapsed
	// in a row. A dead job is kept for [Config.DeadRetention] and can be redriven.
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
	// MaxDelay is the maximum Delay, and the maximum time from now to RunAt and ExpiresAt: ten
	// years.
	MaxDelay = 3653 * 24 * time.Hour
	// MaxPayload is the maximum size of a payload, in bytes of JSON.
	MaxPayload = 256 << 10
	// MaxPayloadDepth is the maximum nesting depth of arrays and objects in a payload.
	MaxPayloadDepth = 256
	// MaxAttempts is the maximum of [Job.MaxAttempts].
	MaxAttempts = 100
	// MinAckTimeout and MaxAckTimeout bound [Job.AckTimeout]. MaxAckTimeout is the maximum
	// visibility timeout of SQS.
	MinAckTimeout = time.Second
	MaxAckTimeout = 12 * time.Hour
	// MaxBackoff is the maximum of [Backoff.Initial] and [Backoff.Max].
	MaxBackoff = 7 * 24 * time.Hour
	// MaxMultiplier is the maximum of [Backoff.Multiplier].
	MaxMultiplier = 100
	// MaxHeaders is the maximum number of headers of a job.
	MaxHeaders = 8
	// MaxHeaderBytes is the maximum total size of the names and values of a job's headers, in
	// bytes.
	MaxHeaderBytes = 4096
	// MaxGroup is the maximum length of [Job.Group].
	MaxGroup = 128
	// MaxFIFOID is the maximum length of a job ID on a FIFO queue. The deduplication ID consists of
	// the job ID, the attempt and the number of redrives, and SQS limits it to 128 characters.
	MaxFIFOID = 116
	// MaxBatch is the maximum of the limits that callers pass to Claim and Maintain, and the
	// maximum number of IDs of one Redrive.
	MaxBatch = 500
	// MaxPage is the maximum number of jobs on a page of List.
	MaxPage = 200
	// MaxRedrive is the maximum number of jobs that one Redrive moves.
	MaxRedrive = 10_000
	// MaxError is the maximum stored length of an attempt's error, in bytes.
	MaxError = 1024
)

// Job is a payload that is sent to an SQS queue when it is due. [Job.Normalize] applies the
// defaults and checks the bounds.
type Job struct {
	// ID identifies the job in its queue. While a job with this ID exists, enqueuing the ID again
	// changes nothing. Defaults to a random ID.
	ID string
	// Payload is valid JSON of up to MaxPayload bytes, nested up to MaxPayloadDepth deep. Required.
	Payload json.RawMessage
	// RunAt is the due time, at most MaxDelay from now. It is rounded up to a whole millisecond. If
	// it is the zero time, the job is due after Delay, by Redis' clock. A time in the past means
	// now.
	RunAt time.Time
	// Delay is the time until the job is due, rounded up to a whole millisecond: 0 to MaxDelay.
	// RunAt and Delay must not both be set.
	Delay time.Duration
	// MaxAttempts is the maximum number of times that the job is sent: 1 to 100. With 2 or more,
	// the job is sent until the consumer acknowledges it. Defaults to 1: no acknowledgement is
	// needed.
	MaxAttempts int
	// AckTimeout is the time for which an attempt waits for its acknowledgement after SQS has
	// accepted it: MinAckTimeout to MaxAckTimeout. Defaults to 30 s.
	AckTimeout time.Duration
	// Backoff is the delay after a failed attempt. The zero value means DefaultBackoff.
	Backoff Backoff
	// ExpiresAt is the end of the job's validity: a job that is not claimed before this time is not
	// sent. It must be after RunAt, and at most MaxDelay from now. The zero time means that the job
	// never expires.
	ExpiresAt time.Time
	// Group is the message group on a FIFO queue: up to MaxGroup printable ASCII characters without
	// spaces. By default, each job has its own group.
	Group string
	// Headers become attributes of the SQS message: up to MaxHeaders headers and MaxHeaderBytes in
	// total.
	Headers map[string]string
	// Trace is the W3C traceparent (https://www.w3.org/TR/trace-context/) of the message. Normalize
	// removes an invalid value.
	Trace string
	// Durable marks a job that the outbox also keeps until it is sent. Queues only stores the mark;
	// package jobs writes the job to the outbox.
	Durable bool
}

// Backoff sets the delay between failed attempt n and attempt n+1: Initial × Multiplier^(n-1), but
// at most Max. With Jitter, the delay is random between 0 and this value ("full jitter", AWS
// Architecture Blog, "Exponential Backoff and Jitter", 2015).
type Backoff struct {
	// Initial is the delay after the first attempt: 1 ms to MaxBackoff. Defaults to 1 s.
	Initial time.Duration
	// Max is the maximum delay: Initial to MaxBackoff. Defaults to 1 h, or to Initial if Initial is
	// longer.
	Max time.Duration
	// Multiplier is the factor by which the delay grows with each attempt, rounded to three decimal
	// places: 1 to MaxMultiplier. Defaults to 2.
	Multiplier float64
	// Jitter makes each delay random. It is true in DefaultBackoff, which replaces a zero Backoff.
	// If the caller sets any other field, Jitter keeps the caller's value.
	Jitter bool
}

// DefaultBackoff returns a backoff of 1 s that doubles up to 1 h, with jitter.
func DefaultBackoff() Backoff {
	return Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}
}

// thousandths returns the multiplier × 1000, as a record stores it.
func (b *Backoff) thousandths() int64 { return int64(math.Round(b.Multiplier * 1000)) }

// Enqueued describes the job with the enqueued ID: the new job, or the existing job if Duplicate is
// true.
type Enqueued struct {
	ID      string
	State   State
	RunAt   time.Time
	Attempt int
	// Duplicate reports whether a job with this ID already existed. If so, nothing was enqueued.
	Duplicate bool
	// Differs reports whether the existing job has a different payload, group or headers.
	Differs bool
	// Durable reports whether the outbox also keeps the job.
	Durable bool
}

// Result is the outcome of one job of [Queues.Enqueue].
type Result struct {
	// Job is the normalized job, or the job as given if it is invalid.
	Job      Job
	Enqueued Enqueued
	// Err is the reason why the job was not enqueued: [ErrInvalid], [ErrPayloadTooLarge] or
	// [ErrUnavailable]. After ErrUnavailable, Redis may have stored the job although its reply was
	// lost. Enqueuing the job again with the same ID is safe.
	Err error
}

// Info is the current state of a job.
type Info struct {
	ID    string
	State State
	// RunAt is the due time of the current attempt or, if the job is scheduled, of its next
	// attempt.
	RunAt time.Time
	// DispatchedAt is the time at which SQS accepted the latest attempt, or the zero time if SQS
	// has accepted none.
	DispatchedAt time.Time
	// Attempt is the number of the latest attempt, or 0 before the first attempt.
	Attempt     int
	MaxAttempts int
	// LastError is the error of the latest attempt that failed, or "" if none has failed.
	LastError string
	Payload   json.RawMessage
	Group     string
	Headers   map[string]string
	// ExpiresAt is the zero time if the job never expires.
	ExpiresAt time.Time
	// Durable reports whether the outbox also keeps the job.
	Durable bool
}
