package delayqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// Get reads a job. Errors: job_not_found, store_unavailable.
func (q *Queues) Get(ctx context.Context, queue, id string) (Info, error) {
	return q.find(ctx, id, func(shard int) (Info, error) {
		var record string
		found := false
		err := q.conn.Do(ctx, func(ctx context.Context) error {
			values, err := q.conn.Client().HMGet(ctx, placeOf(queue, shard).jobs, id).Result()
			if err == nil {
				record, found = values[0].(string)
			}
			return err
		})
		switch {
		case err != nil:
			return Info{}, err
		case !found:
			return Info{}, notFound(id)
		}
		_, info, _, err := q.codec.decode(id, record)
		return info, err
	})
}

// find tries the shards in which a job may be, until one has it.
func (q *Queues) find(ctx context.Context, id string, try func(shard int) (Info, error)) (Info, error) {
	if _, err := q.allShards(ctx); err != nil {
		return Info{}, err
	}
	var info Info
	var err error
	for _, shard := range q.candidates(id) {
		if info, err = try(shard); fault.CodeOf(err) != fault.JobNotFound {
			return info, err
		}
	}
	return info, err
}

// Cancel takes a scheduled job out. Errors: job_not_found; job_conflict once it is on its way;
// store_unavailable.
func (q *Queues) Cancel(ctx context.Context, queue, id string) (Info, error) {
	return q.change(ctx, queue, id, "cancel", "", nil)
}

// Change is what Reschedule changes.
type Change struct {
	// RunAt is the new due time. If it is the zero time, Delay is one relative to now. If Delay is
	// nil as well, the due time stays.
	RunAt time.Time
	Delay *time.Duration
	// Payload is a new payload; nil keeps it.
	Payload json.RawMessage
}

// Reschedule changes a scheduled job and keeps its id. Errors: job_not_found; job_conflict once it
// is on its way; store_unavailable.
func (q *Queues) Reschedule(ctx context.Context, queue, id string, c Change) (Info, error) {
	c, err := c.Normalize()
	if err != nil {
		return Info{}, err
	}
	when := ""
	switch {
	case c.Delay != nil:
		when = (&Job{Delay: *c.Delay}).when()
	case !c.RunAt.IsZero():
		when = (&Job{RunAt: c.RunAt}).when()
	}
	return q.change(ctx, queue, id, "change", when, c.Payload)
}

func (q *Queues) change(ctx context.Context, queue, id, what, when string, payload json.RawMessage) (Info, error) {
	fresh, packed := "0", ""
	if payload != nil {
		fresh, packed = "1", q.codec.pack(payload)
	}
	return q.find(ctx, id, func(shard int) (Info, error) {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.change, []string{p.due, p.done, p.jobs}, what, id,
			q.cfg.DedupWindow.Milliseconds(), when, packed, fresh,
			wakeChannel, wakeMessage(queue, shard))
		if err != nil {
			return Info{}, err
		}
		return settledInfo(id, rows)
	})
}

// Ack records that an attempt succeeded. Errors: [ErrInvalid]; [ErrNotFound]; [ErrConflict] if the job
// does not await the acknowledgement of that attempt; [ErrUnavailable].
func (q *Queues) Ack(ctx context.Context, queue, id string, attempt int) (Info, error) {
	return q.settle(ctx, queue, id, "ack", attempt, "", nil)
}

// Nack records that an attempt failed, and why. The job is scheduled again after delay, or after its
// backoff if that is nil, and is dead after its last attempt. Errors: as of Ack.
func (q *Queues) Nack(ctx context.Context, queue, id string, attempt int, why string,
	delay *time.Duration) (Info, error) {
	return q.settle(ctx, queue, id, "nack", attempt, why, delay)
}

func (q *Queues) settle(ctx context.Context, queue, id, what string, attempt int, why string,
	delay *time.Duration) (Info, error) {
	var f fault.Fields
	if attempt < 1 || attempt > MaxAttempts {
		f.Add("attempt", "is required and must be the sluice-attempt of the message, 1 to %d", MaxAttempts)
	}
	if delay != nil {
		delay = new(normalizeDelay(&f, *delay))
	}
	if err := f.Err(); err != nil {
		return Info{}, err
	}

	wait := ""
	if delay != nil {
		wait = strconv.FormatInt(instant.CeilMilliseconds(*delay), 10)
	}
	return q.find(ctx, id, func(shard int) (Info, error) {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.settle, []string{p.due, p.awaiting, p.dead, p.done, p.jobs}, what, id,
			attempt,
			q.cfg.DedupWindow.Milliseconds(), q.cfg.DeadRetention.Milliseconds(), oneLine(why), wait, jitter(),
			wakeChannel, wakeMessage(queue, shard))
		if err != nil {
			return Info{}, err
		}
		return settledInfo(id, rows)
	})
}

// settledInfo reads the reply {1, header} or {0, header}.
func settledInfo(id string, rows []any) (Info, error) {
	if len(rows) != 2 {
		return Info{}, fmt.Errorf("unexpected reply of a queue's script: %v", rows)
	}
	line := text(rows[1])
	if line == "" {
		return Info{}, notFound(id)
	}
	h, err := parseHeader(line)
	if err != nil {
		return Info{}, err
	}
	if number(rows[0]) == 0 {
		return Info{}, conflict(&h)
	}
	return Info{ID: id, State: h.state, RunAt: h.runAt(), DispatchedAt: h.sentAt(), Attempt: h.attempt,
		MaxAttempts: h.maxAttempts, Durable: h.durable}, nil
}

// Normalize returns c with its instant and its delay rounded up to whole milliseconds.
// [Queues.Reschedule] calls it. The error is [ErrPayloadTooLarge] or an [ErrInvalid] that lists every
// invalid field by its name in the HTTP API.
func (c Change) Normalize() (Change, error) {
	if err := checkPayloadSize(c.Payload); err != nil {
		return c, err
	}
	n := c
	var f fault.Fields
	switch {
	case n.RunAt.IsZero() && n.Delay == nil && n.Payload == nil:
		f.Add("body", "must have run_at, delay_ms or payload")
	case !n.RunAt.IsZero() && n.Delay != nil:
		f.Add("run_at", "excludes delay_ms: give one of them")
	}
	n.RunAt = normalizeInstant(&f, "run_at", n.RunAt)
	if n.Delay != nil {
		n.Delay = new(normalizeDelay(&f, *n.Delay))
	}
	if n.Payload != nil {
		checkPayload(&f, n.Payload)
	}

	if err := f.Err(); err != nil {
		return c, err
	}
	return n, nil
}
