package delayqueue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// Redis can lose pauses, so a deployment may also keep them in a durable store. The functions in
// this file copy them from there to Redis.

// maxPauseRaces bounds the retries after a lost race with another writer of the pause.
const maxPauseRaces = 8

// ReadPause reads the pause of a queue from a durable store.
type ReadPause func(ctx context.Context) (Pause, error)

// CurrentPause returns the pause that a shard's queue has at the given time by Redis' clock. If
// Redis has lost the pause, CurrentPause calls the function read and stores the result in Redis.
//
// A deployment that stores pauses outside of Redis calls CurrentPause after each Claim, and
// requeues the jobs if the queue is paused, because Claim returns jobs of paused queues after Redis
// has lost its data. Errors: the errors of the function read, [ErrUnavailable].
func (q *Queues) CurrentPause(ctx context.Context, queue string, shard int, now time.Time,
	read ReadPause) (Pause, error) {
	for range maxPauseRaces {
		pause, stored, err := q.storedPause(ctx, queue, shard)
		if err != nil {
			return Pause{}, err
		}
		if stored {
			return pause.at(now), nil
		}
		if _, err := q.loadPause(ctx, queue, shard, "", read); err != nil {
			return Pause{}, err
		}
	}
	return Pause{}, tooManyPauseRaces()
}

// at returns p, or the zero Pause if p ends at or before the given time.
func (p Pause) at(now time.Time) Pause {
	if !p.Until.IsZero() && !p.Until.After(now) {
		return Pause{}
	}
	return p
}

// storedPause reads the pause of a shard from Redis. The result stored is false if Redis may have
// lost the pause.
func (q *Queues) storedPause(ctx context.Context, queue string, shard int) (pause Pause, stored bool, err error) {
	var values []any
	err = q.conn.Do(ctx, func(ctx context.Context) (err error) {
		values, err = q.conn.Client().MGet(ctx, pauseMark(queue, shard), placeOf(queue, shard).paused).Result()
		return err
	})
	if err != nil || values[0] == nil {
		return Pause{}, false, err
	}
	if until, paused := values[1].(string); paused {
		ms, err := strconv.ParseInt(until, 10, 64)
		return Pause{Paused: true, Until: fromOptionalUnixMS(ms)}, true, err
	}
	return Pause{}, true, nil
}

func tooManyPauseRaces() error {
	return fault.Unavailable("redis", errors.New("other processes keep changing the pause of the queue"))
}

// ReloadPause calls the function read and stores the pause in all shards of a queue. A deployment
// that stores pauses outside of Redis calls ReloadPause after each change of a pause. Errors: the
// errors of the function read, [ErrUnavailable].
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

// reloadPause reads the pause and stores it in a shard. If another process stores a pause at the
// same time, reloadPause tries again, because that process may have read an older pause.
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
	return tooManyPauseRaces()
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

// loadPause reads the pause of a queue and stores it in a shard. If the shard's mark differs from
// the argument mark, it stores nothing and returns false.
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
				queuePause(ctx, p, queue, shard, pause)
				return nil
			})
			return err
		}, pauseMark(queue, shard))
	})
	switch {
	case errors.Is(err, redis.TxFailedErr):
		return false, nil
	case redis.HasErrorPrefix(err, "EXECABORT"): // Redis is out of memory or read-only
		return false, fault.Unavailable("redis", err)
	default:
		return err == nil, err
	}
}
