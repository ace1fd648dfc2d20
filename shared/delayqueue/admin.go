package delayqueue

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// Stats counts a queue, in one call for each shard; nothing is scanned.
func (q *Queues) Stats(ctx context.Context, queue string) (Stats, error) {
	var total Stats
	shards, err := q.allShards(ctx)
	if err != nil {
		return total, err
	}
	for shard := range shards {
		p := placeOf(queue, shard)
		rows, err := q.rows(ctx, q.scripts.stats, []string{p.due, p.leased, p.awaiting, p.dead, p.paused})
		if err != nil {
			return total, err
		}
		if len(rows) != 7 {
			return total, fmt.Errorf("unexpected reply of stats: %v", rows)
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

func (q *Queues) eachShard(ctx context.Context, do func(context.Context, int) error) error {
	shards, err := q.allShards(ctx)
	if err != nil {
		return err
	}
	for shard := range shards {
		if err := q.conn.Do(ctx, func(ctx context.Context) error { return do(ctx, shard) }); err != nil {
			return err
		}
	}
	return nil
}

// Redrive schedules dead jobs again, due now and at attempt 0, and returns how many it moved: the jobs
// of ids, 1 to MaxBatch, or up to limit of the oldest if ids is nil. limit is 1 to MaxRedrive and
// defaults to 1000.
func (q *Queues) Redrive(ctx context.Context, queue string, ids []string, limit int) (int64, error) {
	if err := checkRedrive(ids, limit); err != nil {
		return 0, err
	}
	if limit == 0 {
		limit = defaultRedrive
	}
	shards, err := q.allShards(ctx)
	if err != nil {
		return 0, err
	}
	chosen := make([][]any, shards)
	for _, id := range ids {
		for _, shard := range q.candidates(id) {
			chosen[shard] = append(chosen[shard], id)
		}
	}
	var moved int64
	for shard := range shards {
		if len(ids) > 0 {
			if len(chosen[shard]) == 0 {
				continue
			}
			n, err := q.redriveShard(ctx, queue, shard, 0, chosen[shard])
			if moved += n; err != nil {
				return moved, err
			}
			continue
		}
		// in steps, so that no call holds Redis up
		for step := int64(MaxBatch); step == MaxBatch && moved < int64(limit); {
			step = min(int64(limit)-moved, MaxBatch)
			n, err := q.redriveShard(ctx, queue, shard, step, nil)
			if moved += n; err != nil {
				return moved, err
			}
			step = n
		}
	}
	return moved, nil
}

const defaultRedrive = 1000

func checkRedrive(ids []string, limit int) error {
	var f fault.Fields
	switch {
	case limit < 0 || limit > MaxRedrive:
		f.Add("limit", "must be 1 to %d", MaxRedrive)
	case ids != nil && limit != 0:
		f.Add("limit", "excludes ids: give one of them")
	}
	if ids != nil && (len(ids) == 0 || len(ids) > MaxBatch) {
		f.Add("ids", "must be 1 to %d", MaxBatch)
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !fault.ValidName(id) }) {
		f.Add("ids", "each %s", fault.NameMessage)
	}
	return f.Err()
}

func (q *Queues) redriveShard(ctx context.Context, queue string, shard int, most int64, ids []any) (int64, error) {
	p := placeOf(queue, shard)
	args := append([]any{wakeChannel, wakeMessage(queue, shard), most}, ids...)
	reply, err := q.conn.Run(ctx, q.scripts.redrive, []string{p.due, p.dead, p.jobs}, args...)
	return number(reply), err
}

// layoutKey holds every shard count that the queues were ever run with, so that a change of the
// count strands no job.
const layoutKey = "{sluice:layout}:shards"

// Register notes this deployment's shard count, and reads those of its past. Call it at start and
// now and then.
func (q *Queues) Register(ctx context.Context) error {
	var added *redis.IntCmd
	var members *redis.StringSliceCmd
	err := q.conn.Do(ctx, func(ctx context.Context) error {
		// No transaction: the EXECABORT of a full or read-only Redis would hide why.
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			added, members = p.SAdd(ctx, layoutKey, q.cfg.Shards), p.SMembers(ctx, layoutKey)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	if added.Val() == 1 {
		if err := q.extendPauses(ctx); err != nil {
			return err
		}
	}
	var counts []int
	for _, m := range members.Val() {
		if n, err := strconv.Atoi(m); err == nil && n > 0 && n <= MaxShards {
			counts = append(counts, n)
		}
	}
	q.setLayouts(counts)
	return nil
}

// allShards is how many shards there are or ever were.
func (q *Queues) allShards(ctx context.Context) (int, error) {
	if !q.registered() {
		// what is known will do: a full Redis can still be read
		if err := q.Register(ctx); err != nil && q.layoutCount() == 0 {
			return 0, err
		}
	}
	return q.AllShards(), nil
}
