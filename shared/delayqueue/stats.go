package delayqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// Stats are the counts of a queue's jobs by state.
type Stats struct {
	// Scheduled jobs are not due yet; Due jobs are, and wait for a dispatcher.
	Scheduled   int64
	Due         int64
	Dispatching int64
	AwaitingAck int64
	Dead        int64
	// OldestDue is how long the oldest due job has been due; 0 if none is.
	OldestDue time.Duration
	Paused    bool
}

// Stats counts a queue's jobs, with one call for each shard and without a scan. Errors:
// [ErrInvalid], [ErrUnavailable].
func (q *Queues) Stats(ctx context.Context, queue string) (Stats, error) {
	if err := checkQueue(queue); err != nil {
		return Stats{}, err
	}
	shards, err := q.allShards(ctx)
	if err != nil {
		return Stats{}, err
	}

	var total Stats
	for shard := range shards {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.stats, []string{p.due, p.leased, p.awaiting, p.dead, p.paused})
		if err != nil {
			return Stats{}, err
		}
		if len(rows) != 7 {
			return Stats{}, fmt.Errorf("unexpected reply of stats: %v", rows)
		}
		total.Scheduled += number(rows[0])
		total.Due += number(rows[1])
		total.Dispatching += number(rows[2])
		total.AwaitingAck += number(rows[3])
		total.Dead += number(rows[4])
		total.OldestDue = max(total.OldestDue, instant.Milliseconds(number(rows[5])))
		total.Paused = total.Paused || number(rows[6]) == 1
	}
	return total, nil
}
