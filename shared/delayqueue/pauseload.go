package delayqueue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/fault"
)

// A deployment may store pauses durably elsewhere, because Redis can lose them. The functions here
// copy them to Redis.

// maxPauseRaces is how often reloadPause tries again after it has lost a race.
const maxPauseRaces = 8

// ReadPause reads the pause of a queue from a durable store.
type ReadPause func(ctx context.Context) (Pause, error)

// EnsurePause makes sure that a shard has the pause of its queue: if Redis has lost it, EnsurePause
// calls read and stores the result. A deployment that stores pauses outside of Redis calls it
// before Claim. Errors: the errors of read, [ErrUnavailable].
func (q *Queues) EnsurePause(ctx context.Context, queue string, shard int, read ReadPause) error {
	mark, err := q.readPauseMark(ctx, queue, shard)
	if err != nil || mark != "" {
		return err
	}
	_, err = q.loadPause(ctx, queue, shard, mark, read) // the winner of a race has loaded it as well
	return err
}

// ReloadPause calls read and stores the pause in all shards of a queue. A deployment that stores
// pauses outside of Redis calls it after each change. Errors: the errors of read, [ErrUnavailable].
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

// reloadPause stores the pause in a shard. After a lost race it tries again: the winner may have
// read an older pause.
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

// loadPause reads the pause of a queue and stores it in a shard. If the mark of the shard has
// changed, it stores nothing and reports false.
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
