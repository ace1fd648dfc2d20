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

func notFound(id string) error {
	return fault.New(fault.JobNotFound,
		"there is no job %q in this queue, or it finished longer ago than the dedup window", id)
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

// Ack says that an attempt succeeded. Errors: job_not_found; job_conflict when the job awaits no
// ack of that attempt; store_unavailable.
func (q *Queues) Ack(ctx context.Context, queue, id string, attempt int) (Info, error) {
	return q.settle(ctx, queue, id, "ack", attempt, "", nil)
}

// Nack says that an attempt failed: it is scheduled again after delay, or nil for its backoff, or
// dead after its last attempt. Errors: as of Ack.
func (q *Queues) Nack(ctx context.Context, queue, id string, attempt int, why string,
	delay *time.Duration) (Info, error) {
	return q.settle(ctx, queue, id, "nack", attempt, why, delay)
}

func (q *Queues) settle(ctx context.Context, queue, id, what string, attempt int, why string,
	delay *time.Duration) (Info, error) {
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
		return Info{}, fault.New(fault.JobConflict,
			"the job is %s, attempt %d: it has left the state that this call needs", h.state, h.attempt).
			With("state", h.state).With("attempt", h.attempt)
	}
	return Info{ID: id, State: h.state, RunAt: h.runAt(), DispatchedAt: h.sentAt(), Attempt: h.attempt,
		MaxAttempts: h.maxAttempts, Durable: h.durable}, nil
}
