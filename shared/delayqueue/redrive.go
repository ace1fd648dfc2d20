package delayqueue

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/shared/fault"
)

const defaultRedrive = 1000

// RedriveOptions select the dead jobs to redrive.
type RedriveOptions struct {
	// IDs are the IDs of the jobs to redrive: 1 to MaxBatch. If IDs is nil, Redrive selects up to
	// Limit dead jobs. It goes through the shards in order, and takes the jobs that
	// died first from each shard.
	IDs []string
	// Limit is the maximum number of dead jobs to redrive if IDs is nil: 1 to MaxRedrive. The
	// default is 1000. IDs and Limit must not both be set.
	Limit int
}

func (o *RedriveOptions) normalize() error {
	var f fault.Fields
	switch {
	case o.Limit < 0 || o.Limit > MaxRedrive:
		f.Add("limit", "must be 1 to %d", MaxRedrive)
	case o.IDs != nil && o.Limit != 0:
		f.Add("limit", "must not be combined with ids")
	}
	if o.IDs != nil && (len(o.IDs) == 0 || len(o.IDs) > MaxBatch) {
		f.Add("ids", "must have 1 to %d entries", MaxBatch)
	}
	if slices.ContainsFunc(o.IDs, func(id string) bool { return !fault.ValidName(id) }) {
		f.Add("ids", "each %s", fault.NameMessage)
	}
	if o.Limit == 0 {
		o.Limit = defaultRedrive
	}
	return f.Err()
}

// Redrive schedules dead jobs again. The jobs are due now, their attempts are counted from 0 again,
// and they no longer expire. Redrive returns the number of jobs that it moved, even if it also
// returns an error. It skips the IDs of jobs that are not dead. Errors: [ErrInvalid],
// [ErrUnavailable].
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

// redriveOldest redrives up to limit jobs. Each script call moves at most MaxBatch jobs, so that no
// call blocks Redis for long.
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

// redriveShard redrives the jobs of a shard with the given IDs. If ids is empty, it redrives up to
// limit of the shard's oldest dead jobs.
func (q *Queues) redriveShard(ctx context.Context, queue string, shard int, limit int64, ids []any) (int64, error) {
	p := placeOf(queue, shard)
	args := append([]any{wakeChannel, wakeMessage(queue, shard), limit}, ids...)
	reply, err := q.conn.Run(ctx, q.scripts.redrive, []string{p.due, p.dead, p.jobs}, args...)
	return number(reply), err
}
