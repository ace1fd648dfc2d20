package delayqueue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// Cancel cancels a scheduled job. Canceling it again succeeds. Errors: [ErrInvalid]; [ErrNotFound];
// [ErrConflict] if the job is no longer scheduled; [ErrUnavailable].
func (q *Queues) Cancel(ctx context.Context, queue, id string) (Info, error) {
	return q.change(ctx, queue, id, cancel, Change{})
}

// Change describes changes to a scheduled job. A field that is not set leaves the job's value
// unchanged.
type Change struct {
	// RunAt is the new due time; see [Job.RunAt]. If it is the zero time, Delay sets the due time.
	// If Delay is also nil, the due time does not change.
	RunAt time.Time
	// Delay is the time from now until the job is due: 0 to MaxDelay. RunAt and Delay must not both
	// be set.
	Delay *time.Duration
	// Payload is the new payload; see [Job.Payload]. Nil keeps the current payload.
	Payload json.RawMessage
}

// Normalize returns c with its times rounded up to whole milliseconds. [Queues.Reschedule] calls
// it. The error is [ErrPayloadTooLarge] or an [ErrInvalid] that lists every invalid field by its
// name in the HTTP API.
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
		f.Add("run_at", "must not be combined with delay_ms")
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

// due formats the new due time for scripts. It returns "" if the due time does not change.
func (c *Change) due() string {
	switch {
	case c.Delay != nil:
		return string((&Job{Delay: *c.Delay}).appendDue(nil))
	case !c.RunAt.IsZero():
		return string((&Job{RunAt: c.RunAt}).appendDue(nil))
	default:
		return ""
	}
}

// Reschedule changes the due time, the payload or both of a scheduled job. The ID does not change.
// Errors: [ErrInvalid]; [ErrPayloadTooLarge]; [ErrNotFound]; [ErrConflict] if the job is no longer
// scheduled; [ErrUnavailable].
func (q *Queues) Reschedule(ctx context.Context, queue, id string, c Change) (Info, error) {
	c, err := c.Normalize()
	if err != nil {
		return Info{}, err
	}
	return q.change(ctx, queue, id, reschedule, c)
}

// changeMode selects the operation of scripts/change.lua.
type changeMode string

const (
	cancel     changeMode = "cancel"
	reschedule changeMode = "change"
)

func (q *Queues) change(ctx context.Context, queue, id string, mode changeMode, c Change) (Info, error) {
	hasPayload, packed := 0, ""
	if c.Payload != nil {
		hasPayload, packed = 1, q.codec.pack(c.Payload)
	}
	return q.find(ctx, queue, id, func(shard int) (Info, error) {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.change, []string{p.due, p.done, p.jobs},
			string(mode), id, q.cfg.DedupWindow.Milliseconds(), c.due(), packed, hasPayload,
			wakeChannel, wakeMessage(queue, shard))
		if err != nil {
			return Info{}, err
		}
		return parseTransition(id, rows)
	})
}
