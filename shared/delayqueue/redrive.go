package delayqueue

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/shared/fault"
)

const defaultRedrive = 1000

// RedriveOptions choose the dead jobs to redrive.
type RedriveOptions struct {
	// IDs are the jobs to redrive: 1 to MaxBatch. Nil means the oldest dead jobs.
	IDs []string
	// Limit is how many of the oldest dead jobs to redrive at most: 1 to MaxRedrive. Defaults to
	// 1000. It excludes IDs.
	Limit int
}

func (o *RedriveOptions) normalize() error {
	var f fault.Fields
	switch {
	case o.Limit < 0 || o.Limit > MaxRedrive:
		f.Add("limit", "must be 1 to %d", MaxRedrive)
	case o.IDs != nil && o.Limit != 0:
		f.Add("limit", "excludes ids: give one of them")
	}
	if o.IDs != nil && (len(o.IDs) == 0 || len(o.IDs) > MaxBatch) {
		f.Add("ids", "must be 1 to %d", MaxBatch)
	}
	if slices.ContainsFunc(o.IDs, func(id string) bool { return !fault.ValidName(id) }) {
		f.Add("ids", "each %s", fault.NameMessage)
	}
	if o.Limit == 0 {
		o.Limit = defaultRedrive
	}
	return f.Err()
}

// Redrive schedules dead jobs again: due now, at attempt 0 and without ExpiresAt. It returns how
// many jobs it moved, also together with an error. IDs of jobs that are not dead are skipped.
// Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Redrive(ctx context.Context, queue string, o RedriveOptions) (moved int64, err error) {
	if err := checkQueue(queue); err != nil {
		return 0, err
	}
	if err := o.normalize(); err != nil {
		return 0, err
	}
	shards, err := q.allShards(ctx)
	if err != nil {
		return 0, err
	}
	if o.IDs != nil {
		return q.redriveIDs(ctx, queue, shards, o.IDs)
	}
	return q.redriveOldest(ctx, queue, shards, int64(o.Limit))
}

func (q *Queues) redriveIDs(ctx context.Context, queue string, shards int, ids []string) (moved int64, err error) {
	byShard := make([][]any, shards)
	for _, id := range ids {
		for _, shard := range q.candidates(id) {
			byShard[shard] = append(byShard[shard], id)
		}
	}
	for shard, ids := range byShard {
		if len(ids) == 0 {
			continue
		}
		n, err := q.redriveShard(ctx, queue, shard, 0, ids)
		if moved += n; err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// redriveOldest moves up to MaxBatch jobs in one call, so that no call blocks Redis for long.
func (q *Queues) redriveOldest(ctx context.Context, queue string, shards int, limit int64) (moved int64, err error) {
	for shard := range shards {
		for moved < limit {
			batch := min(limit-moved, MaxBatch)
			n, err := q.redriveShard(ctx, queue, shard, batch, nil)
			if moved += n; err != nil {
				return moved, err
			}
			if n < batch {
				break
			}
		}
	}
	return moved, nil
}

// redriveShard redrives ids, or up to limit of the oldest dead jobs of a shard if there are none.
func (q *Queues) redriveShard(ctx context.Context, queue string, shard int, limit int64, ids []any) (int64, error) {
	p := placeOf(queue, shard)
	args := append([]any{wakeChannel, wakeMessage(queue, shard), limit}, ids...)
	reply, err := q.conn.Run(ctx, q.scripts.redrive, []string{p.due, p.dead, p.jobs}, args...)
	return number(reply), err
}
