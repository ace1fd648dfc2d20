// Package delayqueue keeps jobs until they are due, and hands each out under a lease.
//
// A job is in exactly one place: due, leased, awaiting its ack, dead or done. Every change of place
// is one script. The clock is Redis'.
package delayqueue

import (
	"encoding/json"
	"time"
)

// State is where a job is.
type State string

// The states.
const (
	Scheduled   State = "scheduled"
	Dispatching State = "dispatching"
	Dispatched  State = "dispatched"
	AwaitingAck State = "awaiting_ack"
	Succeeded   State = "succeeded"
	Canceled    State = "canceled"
	Expired     State = "expired"
	Dead        State = "dead"
)

// Ranges of the contract.
const (
	MaxDelay       = 3653 * 24 * time.Hour // ten years
	MaxPayload     = 256 << 10             // bytes of JSON
	MaxAttempts    = 100
	MaxHeaders     = 8
	MaxBatch       = 500
	MaxPage        = 200
	MaxAckTimeout  = 12 * time.Hour // SQS keeps a message invisible no longer
	MinAckTimeout  = time.Second
	MaxError       = 1024 // bytes kept of last_error
	defaultAckTime = 30 * time.Second
)

// Backoff is how long to wait before attempt n+1: initial × multiplier^(n-1), at most max; with
// jitter a random part of that (full jitter, AWS Architecture Blog, "Exponential Backoff and
// Jitter", 2015).
type Backoff struct {
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64 // to three decimals
	Jitter     bool
}

// DefaultBackoff is 1 s, doubled up to an hour, with jitter.
func DefaultBackoff() Backoff {
	return Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}
}

// Job is what is to be sent to a queue at its time.
type Job struct {
	ID      string
	Payload json.RawMessage
	// RunAt is the due time, rounded up to a whole millisecond. The zero time means Delay after
	// now, by Redis' clock. A RunAt in the past means now.
	RunAt time.Time
	Delay time.Duration
	// MaxAttempts is 1 for fire and forget; with more the consumer must ack.
	MaxAttempts int
	AckTimeout  time.Duration // default 30 s
	Backoff     Backoff
	// ExpiresAt is the time from which the job is no longer sent. The zero time means never.
	ExpiresAt time.Time
	Group     string
	Headers   map[string]string
	// Trace is a W3C traceparent, or "".
	Trace string
	// Durable says that the outbox holds it too, until it is sent.
	Durable bool
}

// Enqueued is what became of a Job.
type Enqueued struct {
	ID        string
	State     State
	RunAt     time.Time
	Attempt   int
	Duplicate bool
	// Differs says that the job that is known by this id has another content.
	Differs bool
	// Durable says that the outbox has it too.
	Durable bool
}

// Info is a job as it stands.
type Info struct {
	ID           string
	State        State
	RunAt        time.Time
	DispatchedAt time.Time // zero until SQS has accepted an attempt
	Attempt      int
	MaxAttempts  int
	LastError    string
	Payload      json.RawMessage
	Group        string
	Headers      map[string]string
	ExpiresAt    time.Time // zero when the job never expires
	// Durable says that the outbox has it too.
	Durable bool
}

// Claimed is a job that a dispatcher holds under a lease.
type Claimed struct {
	ID      string
	Shard   int
	Claim   int64 // fences the answer: only the newest claim's is taken
	Attempt int
	// Redrives is how often it was redriven: its attempts have begun anew as often.
	Redrives int
	RunAt    time.Time
	Payload  json.RawMessage
	Group    string
	Headers  map[string]string
	Trace    string
	Durable  bool
}

// Stats are a queue's counts.
type Stats struct {
	Scheduled   int64 // not due yet
	Due         int64
	Dispatching int64
	AwaitingAck int64
	Dead        int64
	OldestDue   time.Duration // how long the oldest has been due
	Paused      bool
}
