package delayqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// RecordSent records that a job was sent from the outbox at sentAt as its first attempt, so that its
// ID is not sent again. A job that Redis has in a state after scheduled stays as it is. Errors:
// store_unavailable.
func (q *Queues) RecordSent(ctx context.Context, queue string, j Job, sentAt time.Time) error {
	state, timeout := "d", ""
	if j.MaxAttempts > 1 {
		state, timeout = "w", strconv.FormatInt(defaultAckTime.Milliseconds(), 10)
		if j.AckTimeout > 0 {
			timeout = strconv.FormatInt(instant.CeilMilliseconds(j.AckTimeout), 10)
		}
	}
	header := fmt.Sprintf("%s 1 %d %d 1%s t%d", state, j.MaxAttempts, unixMS(j.RunAt),
		j.appendOptions(nil), unixMS(sentAt))
	return q.recordOutcome(ctx, queue, &j, header, timeout)
}

// RecordCanceled records that a job of the outbox was canceled, so that nobody enqueues its ID before
// the dedup window ends. A job that Redis has in a state after scheduled stays as it is: read it
// afterwards. Errors: store_unavailable.
func (q *Queues) RecordCanceled(ctx context.Context, queue string, j Job) error {
	header := fmt.Sprintf("c 0 %d %d 0%s", j.MaxAttempts, unixMS(j.RunAt), j.appendOptions(nil))
	return q.recordOutcome(ctx, queue, &j, header, "")
}

// recordOutcome stores a record with the given header for a job that Redis does not have or has
// scheduled. It awaits an acknowledgement for timeout milliseconds, or is finished if that is "".
func (q *Queues) recordOutcome(ctx context.Context, queue string, j *Job, header, timeout string) error {
	if _, err := q.allShards(ctx); err != nil {
		return err
	}
	record, err := q.codec.appendContent([]byte(header+"\n\n"), j)
	if err != nil {
		return err
	}
	store := func(shard int, evenIfNew string) (bool, error) {
		p := placeOf(queue, shard)
		reply, err := q.conn.Run(ctx, q.scripts.recordSent, []string{p.due, p.awaiting, p.done, p.jobs}, j.ID,
			q.cfg.DedupWindow.Milliseconds(), timeout, record, evenIfNew)
		return number(reply) == 1, err
	}

	shards := q.candidates(j.ID)
	for _, shard := range shards[1:] { // the shards of earlier shard counts, where it may be already
		if stored, err := store(shard, "0"); stored || err != nil {
			return err
		}
	}
	_, err = store(shards[0], "1")
	return err
}
