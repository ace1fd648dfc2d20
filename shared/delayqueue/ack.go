package delayqueue

import (
	"context"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// Ack records that an attempt succeeded, which ends the job. Acknowledging the same attempt again
// succeeds. Errors: [ErrInvalid]; [ErrNotFound]; [ErrConflict] if the job is not waiting for the
// acknowledgement of this attempt; [ErrUnavailable].
func (q *Queues) Ack(ctx context.Context, queue, id string, attempt int) (Info, error) {
	return q.acknowledge(ctx, queue, id, ack, attempt, NackOptions{})
}

// NackOptions describe a failed attempt.
type NackOptions struct {
	// Reason becomes the job's last error. It is stored on one line and truncated to MaxError
	// bytes.
	Reason string
	// Delay is the time until the next attempt: 0 to MaxDelay. Nil selects the job's backoff.
	Delay *time.Duration
}

// Nack records that an attempt failed. The job is scheduled again, or becomes dead after its last
// attempt. Errors: the same as for Ack.
func (q *Queues) Nack(ctx context.Context, queue, id string, attempt int, o NackOptions) (Info, error) {
	return q.acknowledge(ctx, queue, id, nack, attempt, o)
}

// ackMode selects the operation of scripts/ack.lua.
type ackMode string

const (
	ack  ackMode = "ack"
	nack ackMode = "nack"
)

func (q *Queues) acknowledge(ctx context.Context, queue, id string, mode ackMode, attempt int,
	o NackOptions) (Info, error) {
	var f fault.Fields
	if attempt < 1 || attempt > MaxAttempts {
		f.Add("attempt", "is required: send the value of the message attribute sluice-attempt, 1 to %d", MaxAttempts)
	}
	delayMS := ""
	if o.Delay != nil {
		delayMS = strconv.FormatInt(instant.CeilMilliseconds(normalizeDelay(&f, *o.Delay)), 10)
	}
	if err := f.Err(); err != nil {
		return Info{}, err
	}

	return q.find(ctx, queue, id, func(shard int) (Info, error) {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.ack, []string{p.due, p.awaiting, p.dead, p.done, p.jobs},
			string(mode), id, attempt, q.cfg.DedupWindow.Milliseconds(), q.cfg.DeadRetention.Milliseconds(),
			oneLine(o.Reason), delayMS, jitter(), wakeChannel, wakeMessage(queue, shard))
		if err != nil {
			return Info{}, err
		}
		return parseTransition(id, rows)
	})
}
