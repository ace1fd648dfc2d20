package delayqueue

import "github.com/sluicehq/sluice/shared/fault"

// Errors of this package, for [errors.Is]. The errors that calls return are *[fault.Error] values
// of the same code and say more.
var (
	// ErrInvalid: an argument is invalid; [fault.Error.Fields] lists every invalid field.
	ErrInvalid error = fault.New(fault.InvalidRequest, "an argument is invalid")
	// ErrPayloadTooLarge: a payload is over [MaxPayload] bytes.
	ErrPayloadTooLarge error = fault.New(fault.PayloadTooLarge, "the payload is too large")
	// ErrNotFound: the queue has no job of this ID; it never existed, or it finished and was
	// removed.
	ErrNotFound error = fault.New(fault.JobNotFound, "there is no job of this id")
	// ErrConflict: the job is not in the state that the call needs. [fault.Error.Extra] has its
	// "state" and "attempt".
	ErrConflict error = fault.New(fault.JobConflict, "the job is in another state")
	// ErrUnavailable: Redis is unavailable, read-only or out of memory.
	ErrUnavailable error = fault.New(fault.StoreUnavailable, "redis is unavailable")
)

func notFound(id string) error {
	return fault.New(fault.JobNotFound,
		"there is no job %q in this queue, or it finished longer ago than the dedup window", id)
}

// conflict returns the [ErrConflict] of a job whose header is h.
func conflict(h *header) error {
	return fault.New(fault.JobConflict, "the job is %s at attempt %d, which this call does not apply to",
		h.state, h.attempt).With("state", h.state).With("attempt", h.attempt)
}

// checkQueue refuses a queue's name that cannot be part of a key.
func checkQueue(queue string) error {
	if !fault.ValidName(queue) {
		return fault.Invalid("queue", fault.NameMessage)
	}
	return nil
}

// checkShard refuses a shard that no queue has.
func checkShard(f *fault.Fields, queue string, shard int) {
	f.CheckName("queue", queue)
	if shard < 0 || shard >= MaxShards {
		f.Add("shard", "must be 0 to %d", MaxShards-1)
	}
}

// checkLimit refuses a number of jobs that one script call may not process.
func checkLimit(f *fault.Fields, limit int) {
	if limit < 1 || limit > MaxBatch {
		f.Add("limit", "must be 1 to %d", MaxBatch)
	}
}

// checkJobName refuses the name of a queue or the ID of a job that no job can have.
func checkJobName(queue, id string) error {
	var f fault.Fields
	f.CheckName("queue", queue)
	f.CheckName("id", id)
	return f.Err()
}
