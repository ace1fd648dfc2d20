package delayqueue

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/shared/fault"
)

// Maintained counts the jobs that one call of Maintain changed.
type Maintained struct {
	// Reclaimed is the number of jobs that were scheduled again because their lease lapsed.
	Reclaimed int64
	// Missed is the number of attempts that were not acknowledged in time. Died is the number of
	// jobs that became dead because the missed attempt was their last.
	Missed int64
	Died   int64
	// Pruned is the number of jobs that were removed after their dedup window or retention.
	Pruned int64
	// More reports whether Maintain reached its limit. If so, call it again.
	More bool
}

// Maintain reschedules the jobs of a shard whose lease has lapsed, and ends attempts that were not
// acknowledged in time. It removes finished jobs after their dedup window and dead jobs after their
// retention. It processes up to limit jobs of each of these four kinds. The limit is 1 to MaxBatch.
// Errors: [ErrInvalid], [ErrUnavailable].
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
		return Maintained{}, fmt.Errorf("unexpected reply from the maintain script: %v", rows)
	}
	return Maintained{
		Reclaimed: number(rows[0]),
		Missed:    number(rows[1]),
		Died:      number(rows[2]),
		Pruned:    number(rows[3]),
		More:      number(rows[4]) == 1,
	}, nil
}
