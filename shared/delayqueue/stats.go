package delayqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// Stats are the counts of a queue's jobs by state.
type Stats struct {
	// Scheduled is the number of jobs that are not due yet. Due is the number of jobs that are due
	// and wait for a dispatcher.
	Scheduled   int64
	Due         int64
	Dispatching int64
	AwaitingAck int64
	Dead        int64
	// OldestDue is the time since the due time of the oldest due job, or 0 if no job is due.
	OldestDue time.Duration
	Paused    bool
}

// Stats counts a queue's jobs. It makes one script call for each shard and does not scan the jobs.
// Errors: [ErrInvalid], [ErrUnavailable].
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
			return Stats{}, fmt.Errorf("unexpected reply from the stats script: %v", rows)
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
