package delayqueue

import "github.com/sluicehq/sluice/shared/fault"

// Errors of this package, for [errors.Is]. The methods return *[fault.Error] values with the same
// codes and with details.
var (
	// ErrInvalid: an argument is invalid; [fault.Error.Fields] lists every invalid field.
	ErrInvalid error = fault.New(fault.InvalidRequest, "an argument is invalid")
	// ErrPayloadTooLarge: a payload is larger than [MaxPayload] bytes.
	ErrPayloadTooLarge error = fault.New(fault.PayloadTooLarge, "the payload is too large")
	// ErrNotFound: the queue has no job with this ID: the job never existed, or it finished and was
	// removed.
	ErrNotFound error = fault.New(fault.JobNotFound, "there is no job with this id")
	// ErrConflict: the job's state or attempt does not allow the call. [fault.Error.Extra] contains
	// the job's "state" and "attempt".
	ErrConflict error = fault.New(fault.JobConflict, "the state of the job does not allow this call")
	// ErrUnavailable: Redis is unavailable, read-only or out of memory.
	ErrUnavailable error = fault.New(fault.StoreUnavailable, "redis is unavailable")
)

func notFound(id string) error {
	return fault.New(fault.JobNotFound,
		"there is no job %q in this queue: it never existed, or it was removed after it finished", id)
}

// conflict returns the [ErrConflict] for a job with header h.
func conflict(h *header) error {
	return fault.New(fault.JobConflict, "this call does not apply to a job that is %s at attempt %d",
		h.state, h.attempt).With("state", h.state).With("attempt", h.attempt)
}

// checkQueue returns [ErrInvalid] for an invalid queue name.
func checkQueue(queue string) error {
	if !fault.ValidName(queue) {
		return fault.Invalid("queue", fault.NameMessage)
	}
	return nil
}

// checkShard adds an error to f for an invalid queue name or a shard outside 0 to MaxShards-1.
func checkShard(f *fault.Fields, queue string, shard int) {
	f.CheckName("queue", queue)
	if shard < 0 || shard >= MaxShards {
		f.Add("shard", "must be 0 to %d", MaxShards-1)
	}
}

// checkLimit adds an error to f for a limit outside 1 to MaxBatch.
func checkLimit(f *fault.Fields, limit int) {
	if limit < 1 || limit > MaxBatch {
		f.Add("limit", "must be 1 to %d", MaxBatch)
	}
}

// checkJobName returns [ErrInvalid] for an invalid queue name or job ID.
func checkJobName(queue, id string) error {
	var f fault.Fields
	f.CheckName("queue", queue)
	f.CheckName("id", id)
	return f.Err()
}
