package delayqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// Pause is whether a queue is paused.
type Pause struct {
	Paused bool
	// Until is when the pause ends. The zero time means that Resume ends it.
	Until time.Time
}

// Normalize returns p with the end rounded up to a whole millisecond. The error is an [ErrInvalid] that
// names the field "until" if it is more than [MaxDelay] from now.
func (p Pause) Normalize() (Pause, error) {
	var f fault.Fields
	p.Until = normalizeInstant(&f, "until", p.Until)
	return p, f.Err()
}

// pausesKey is a hash of the paused queues and the ends of their pauses, so that a pause also holds for
// shards that are added later.
const pausesKey = "{sluice:layout}:pauses"

// Pause keeps a queue's jobs from being claimed until a time, or until Resume if that is the zero
// time. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Pause(ctx context.Context, queue string, until time.Time) error {
	pause, err := Pause{Paused: true, Until: until}.Normalize()
	if err != nil {
		return err
	}
	if err := q.conn.Do(ctx, func(ctx context.Context) error {
		return q.conn.Client().HSet(ctx, pausesKey, queue, pauseValue(pause.Until)).Err()
	}); err != nil {
		return err
	}
	return q.eachShard(ctx, func(ctx context.Context, shard int) error {
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			storePause(ctx, p, queue, shard, pause)
			return nil
		})
		return err
	})
}

// Resume ends a pause. Errors: [ErrUnavailable].
func (q *Queues) Resume(ctx context.Context, queue string) error {
	if err := q.conn.Do(ctx, func(ctx context.Context) error {
		return q.conn.Client().HDel(ctx, pausesKey, queue).Err()
	}); err != nil {
		return err
	}
	return q.eachShard(ctx, func(ctx context.Context, shard int) error {
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			storePause(ctx, p, queue, shard, Pause{})
			return nil
		})
		if err == nil {
			err = q.conn.Client().Publish(ctx, wakeChannel, wakeMessage(queue, shard)).Err()
		}
		return err
	})
}

// pauseValue is how scripts read the end of a pause: in milliseconds since the epoch, or 0 if only
// Resume ends it.
func pauseValue(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return max(1, unixMS(until))
}

// extendPauses pauses the shards of a new shard count for the queues that are paused.
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

// maxPauseRaces is how often a change of a pause is repeated because another one was quicker.
const maxPauseRaces = 8

// ReadPause reads whether a queue is paused from where that is stored durably.
type ReadPause func(ctx context.Context) (Pause, error)

// pauseMark names the key that says that a shard knows whether its queue is paused. Each write of the
// pause gives it another random value. It is missing after Redis lost its data.
func pauseMark(queue string, shard int) string { return placeOf(queue, shard).paused + ":mark" }

// EnsurePause makes sure that a shard knows whether its queue is paused, and calls read if it does
// not. Where pauses are stored outside of Redis, call it before Claim. Errors: those of read,
// [ErrUnavailable].
func (q *Queues) EnsurePause(ctx context.Context, queue string, shard int, read ReadPause) error {
	mark, err := q.readPauseMark(ctx, queue, shard)
	if err != nil || mark != "" {
		return err
	}
	_, err = q.loadPause(ctx, queue, shard, mark, read) // if it lost a race, the other call has loaded it
	return err
}

// ReloadPause calls read and stores the pause in all shards of a queue. Where pauses are stored outside
// of Redis, call it after each change of them. Errors: those of read, [ErrUnavailable].
func (q *Queues) ReloadPause(ctx context.Context, queue string, read ReadPause) error {
	shards, err := q.allShards(ctx)
	if err != nil {
		return err
	}
	for shard := range shards {
		if err := q.reloadPause(ctx, queue, shard, read); err != nil {
			return err
		}
	}
	return nil
}

// reloadPause repeats what loses a race: the winner may have read an older pause.
func (q *Queues) reloadPause(ctx context.Context, queue string, shard int, read ReadPause) error {
	for range maxPauseRaces {
		mark, err := q.readPauseMark(ctx, queue, shard)
		if err != nil {
			return err
		}
		stored, err := q.loadPause(ctx, queue, shard, mark, read)
		if err != nil {
			return err
		}
		if stored {
			return q.conn.Do(ctx, func(ctx context.Context) error {
				return q.conn.Client().Publish(ctx, wakeChannel, wakeMessage(queue, shard)).Err()
			})
		}
	}
	return fault.Unavailable("redis", errors.New("other processes keep changing the pause of the queue"))
}

func (q *Queues) readPauseMark(ctx context.Context, queue string, shard int) (string, error) {
	var mark string
	err := q.conn.Do(ctx, func(ctx context.Context) (err error) {
		mark, err = q.conn.Client().Get(ctx, pauseMark(queue, shard)).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return mark, err
}

// loadPause reads the pause of a queue and stores it in a shard. It reports false and stores nothing if
// the shard's mark is not the given one any more.
func (q *Queues) loadPause(ctx context.Context, queue string, shard int, mark string,
	read ReadPause) (stored bool, err error) {
	pause, err := read(ctx)
	if err != nil {
		return false, err
	}
	err = q.conn.Do(ctx, func(ctx context.Context) error {
		return q.conn.Client().Watch(ctx, func(tx *redis.Tx) error {
			current, err := tx.Get(ctx, pauseMark(queue, shard)).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if current != mark {
				return redis.TxFailedErr
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				storePause(ctx, p, queue, shard, pause)
				return nil
			})
			return err
		}, pauseMark(queue, shard))
	})
	switch {
	case errors.Is(err, redis.TxFailedErr):
		return false, nil
	case redis.HasErrorPrefix(err, "EXECABORT"): // a full or read-only Redis did not queue the writes
		return false, fault.Unavailable("redis", err)
	default:
		return err == nil, err
	}
}

// storePause writes a pause to a shard. The mark goes first, so that a concurrent loadPause, which may
// have read an older pause, does not overwrite this one.
func storePause(ctx context.Context, p redis.Cmdable, queue string, shard int, pause Pause) {
	p.Set(ctx, pauseMark(queue, shard), rand.Text(), 0)
	if pause.Paused {
		p.Set(ctx, placeOf(queue, shard).paused, pauseValue(pause.Until), 0)
	} else {
		p.Del(ctx, placeOf(queue, shard).paused)
	}
}
