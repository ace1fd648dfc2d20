package delayqueue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A newer dispatcher takes over from an older one. Each dispatcher has a number, its generation. A
// starting dispatcher gets a higher generation than all earlier dispatchers. Once it claims jobs,
// it stores its generation with each heartbeat. When the older dispatcher reads a higher generation
// than its own, it can stop, because the newer dispatcher is running.

// Keys of the dispatchers, all in one hash slot.
const (
	generationKey = "{sluice:dispatcher}:generation"
	newestKey     = "{sluice:dispatcher}:heartbeat:generation"
	// HeartbeatKey holds the time of the latest heartbeat of any dispatcher, in milliseconds since
	// the epoch. Health reports read it.
	HeartbeatKey = "{sluice:dispatcher}:heartbeat"
)

// TakeOver returns a generation for a new dispatcher. It is higher than all earlier generations,
// even if Redis has lost its data. Errors: [ErrUnavailable].
func (q *Queues) TakeOver(ctx context.Context) (generation int64, err error) {
	reply, err := q.conn.Run(ctx, q.scripts.takeOver, []string{generationKey, newestKey})
	return number(reply), err
}

// Newest returns the generation of the latest heartbeat, or 0 if there was none in the last hour.
// Errors: [ErrUnavailable].
func (q *Queues) Newest(ctx context.Context) (generation int64, err error) {
	err = q.conn.Do(ctx, func(ctx context.Context) error {
		value, err := q.conn.Client().Get(ctx, newestKey).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		generation, _ = strconv.ParseInt(value, 10, 64)
		return err
	})
	return generation, err
}

// Beat stores a heartbeat of the dispatcher with the given generation. Errors: [ErrUnavailable].
func (q *Queues) Beat(ctx context.Context, generation int64) error {
	return q.conn.Do(ctx, func(ctx context.Context) error {
		_, err := q.conn.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, HeartbeatKey, time.Now().UnixMilli(), 24*time.Hour)
			p.Set(ctx, newestKey, generation, time.Hour)
			return nil
		})
		return err
	})
}
