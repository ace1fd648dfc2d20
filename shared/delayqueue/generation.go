package delayqueue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Dispatchers hand over by generation. A dispatcher that starts takes a generation that is higher
// than all before, and publishes it with its heartbeat once it works. A dispatcher that reads a
// newer generation than its own may stop, because the newer dispatcher works.

// Keys of the dispatchers, all in one hash slot.
const (
	generationKey = "{sluice:dispatcher}:generation"
	newestKey     = "{sluice:dispatcher}:heartbeat:generation"
	// HeartbeatKey holds the time of the latest heartbeat of a dispatcher in milliseconds since the
	// epoch, for health reports.
	HeartbeatKey = "{sluice:dispatcher}:heartbeat"
)

// TakeOver returns a generation for a new dispatcher. It is higher than every one before, also
// after Redis has lost its data. Errors: [ErrUnavailable].
func (q *Queues) TakeOver(ctx context.Context) (generation int64, err error) {
	reply, err := q.conn.Run(ctx, q.scripts.takeOver, []string{generationKey, newestKey})
	return number(reply), err
}

// Newest returns the highest generation that has sent a heartbeat, or 0 if none has in the last
// hour. Errors: [ErrUnavailable].
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

// Beat sends the heartbeat of the dispatcher of a generation. Errors: [ErrUnavailable].
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
