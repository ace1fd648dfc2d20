package delayqueue

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/shared/fault"
)

// Maintained counts the jobs that one Maintain changed.
type Maintained struct {
	// Reclaimed jobs were scheduled again because their lease lapsed.
	Reclaimed int64
	// Missed attempts were not acknowledged in time. Died of them were the last of their job.
	Missed int64
	Died   int64
	// Pruned jobs were removed after their dedup window or retention.
	Pruned int64
	// More reports that Maintain reached its limit: call it again.
	More bool
}

// Maintain reschedules the jobs of a shard whose lease has lapsed, ends attempts that were not
// acknowledged in time, and removes finished jobs after the dedup window and dead ones after their
// retention: up to limit of each, 1 to MaxBatch. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Maintain(ctx context.Context, queue string, shard, limit int) (Maintained, error) {
	var f fault.Fields
	checkShard(&f, queue, shard)
	checkLimit(&f, limit)
	if err := f.Err(); err != nil {
		return Maintained{}, err
	}
	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.maintain, []string{p.due, p.leased, p.awaiting, p.dead, p.done, p.jobs},
		limit, q.cfg.DeadRetention.Milliseconds(), jitter())
	if err != nil {
		return Maintained{}, err
	}
	if len(rows) != 5 {
		return Maintained{}, fmt.Errorf("unexpected reply of maintain: %v", rows)
	}
	return Maintained{
		Reclaimed: number(rows[0]),
		Missed:    number(rows[1]),
		Died:      number(rows[2]),
		Pruned:    number(rows[3]),
		More:      number(rows[4]) == 1,
	}, nil
}
