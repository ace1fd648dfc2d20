package delayqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// RecordSent records that SQS accepted the first attempt of an outbox job at sentAt, so that the
// job is not sent again from Redis. If Redis has the job and its state is not Scheduled, RecordSent
// changes nothing. Errors: [ErrInvalid], [ErrUnavailable].
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

// RecordCanceled records that an outbox job was canceled, so that its ID cannot be enqueued until
// the dedup window ends. If Redis has the job and its state is not Scheduled, RecordCanceled
// changes nothing. Call Get afterwards to learn the state. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) RecordCanceled(ctx context.Context, queue string, j Job) error {
	header := fmt.Sprintf("c 0 %d %d 0%s", j.MaxAttempts, unixMS(j.RunAt), j.appendOptions(nil))
	return q.recordOutcome(ctx, queue, &j, header, "")
}

// recordOutcome stores a record with the given header if Redis does not have the job, or if the job
// is scheduled. The job then awaits its acknowledgement for timeout milliseconds, or is finished if
// timeout is "".
func (q *Queues) recordOutcome(ctx context.Context, queue string, j *Job, header, timeout string) error {
	if err := checkJobName(queue, j.ID); err != nil {
		return err
	}
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
	for _, shard := range shards[1:] { // the job's shards under other shard counts
		if stored, err := store(shard, "0"); stored || err != nil {
			return err
		}
	}
	_, err = store(shards[0], "1")
	return err
}
