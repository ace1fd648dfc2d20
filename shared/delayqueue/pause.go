package delayqueue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// Redis stores a pause in two places. A hash contains all paused queues, so that a pause also
// applies to shards that are added later. A key of each shard contains the end of the pause for
// scripts/claim.lua. Each shard has a second key, the mark. If the mark is missing, Redis may have
// lost the pause.

// pausesKey is the key of the hash that maps each paused queue to the end of its pause.
const pausesKey = "{sluice:layout}:pauses"

// pauseMark returns the key of a shard's mark. Each write of the pause sets the mark to a new
// random value.
func pauseMark(queue string, shard int) string { return placeOf(queue, shard).paused + ":mark" }

// Pause describes whether a queue is paused.
type Pause struct {
	Paused bool
	// Until is the end of the pause. The zero time means that only Resume ends it.
	Until time.Time
}

// Normalize returns p with its end rounded up to a whole millisecond. The error is an [ErrInvalid]
// that names the field "until" if the end is more than [MaxDelay] from now.
func (p Pause) Normalize() (Pause, error) {
	var f fault.Fields
	p.Until = normalizeInstant(&f, "until", p.Until)
	return p, f.Err()
}

// untilMS returns the end of a pause as scripts read it: in milliseconds since the epoch, or 0 if
// only Resume ends it.
func (p *Pause) untilMS() int64 {
	if p.Until.IsZero() {
		return 0
	}
	return max(1, unixMS(p.Until))
}

// Pause prevents claims of a queue's jobs until the given time. If until is the zero time, only
// Resume ends the pause. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Pause(ctx context.Context, queue string, until time.Time) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	pause, err := Pause{Paused: true, Until: until}.Normalize()
	if err != nil {
		return err
	}
	if err := q.conn.Do(ctx, func(ctx context.Context) error {
		return q.conn.Client().HSet(ctx, pausesKey, queue, pause.untilMS()).Err()
	}); err != nil {
		return err
	}
	return q.eachShard(ctx, func(ctx context.Context, shard int) error {
		return q.storePause(ctx, queue, shard, pause)
	})
}

// Resume ends a pause. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Resume(ctx context.Context, queue string) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	if err := q.conn.Do(ctx, func(ctx context.Context) error {
		return q.conn.Client().HDel(ctx, pausesKey, queue).Err()
	}); err != nil {
		return err
	}
	return q.eachShard(ctx, func(ctx context.Context, shard int) error {
		if err := q.storePause(ctx, queue, shard, Pause{}); err != nil {
			return err
		}
		return q.conn.Client().Publish(ctx, wakeChannel, wakeMessage(queue, shard)).Err()
	})
}

func (q *Queues) storePause(ctx context.Context, queue string, shard int, pause Pause) error {
	_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
		queuePause(ctx, p, queue, shard, pause)
		return nil
	})
	return err
}

// queuePause queues the commands that write a pause to a shard. The mark is written first. A
// concurrent loadPause, which may have read an older pause, then detects the new mark and stores
// nothing.
func queuePause(ctx context.Context, p redis.Pipeliner, queue string, shard int, pause Pause) {
	p.Set(ctx, pauseMark(queue, shard), rand.Text(), 0)
	if pause.Paused {
		p.Set(ctx, placeOf(queue, shard).paused, pause.untilMS(), 0)
	} else {
		p.Del(ctx, placeOf(queue, shard).paused)
	}
}

// extendPauses stores the pauses of all paused queues in the shards of a new shard count.
func (q *Queues) extendPauses(ctx context.Context) error {
	var pauses map[string]string
	err := q.conn.Do(ctx, func(ctx context.Context) (err error) {
		pauses, err = q.conn.Client().HGetAll(ctx, pausesKey).Result()
		return err
	})
	if err != nil {
		return err
	}
	for queue, until := range pauses {
		for shard := range q.cfg.Shards {
			set := func(ctx context.Context) error {
				return q.conn.Client().Set(ctx, placeOf(queue, shard).paused, until, 0).Err()
			}
			if err := q.conn.Do(ctx, set); err != nil {
				return err
			}
		}
	}
	return nil
}
