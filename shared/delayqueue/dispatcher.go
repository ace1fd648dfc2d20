package delayqueue

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Keys of the dispatcher, all under one hash tag.
const (
	generationKey = "{sluice:dispatcher}:generation"
	newestKey     = "{sluice:dispatcher}:heartbeat:generation"
	// HeartbeatKey holds when a dispatcher last worked, in ms since the epoch, for health reports.
	HeartbeatKey = "{sluice:dispatcher}:heartbeat"
)

// TakeOver makes the caller the newest dispatcher and returns its generation, which is higher than
// every one before.
func (q *Queues) TakeOver(ctx context.Context) (generation int64, err error) {
	reply, err := q.conn.Run(ctx, q.scripts.takeOver, []string{generationKey, newestKey})
	return number(reply), err
}

// Newest is the generation of the newest dispatcher that is at work, and what it means for older
// ones: they may stop. A dispatcher beats after its first round, so an older one never stops before
// a newer one works. 0 when none is known.
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

// Beat tells that the dispatcher of a generation is at work. The beat is for health reports, the
// generation for older dispatchers.
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

// Shard is one part of one queue.
type Shard struct {
	Queue string
	Index int
}

// Wakeups returns a channel of the shards that have a new first job. It is a hint: what is lost
// here is found by polling. The subscription ends with ctx, and the channel is closed then.
func (q *Queues) Wakeups(ctx context.Context) <-chan Shard {
	out := make(chan Shard, 256)
	pubsub := q.conn.Client().Subscribe(ctx, wakeChannel)
	go func() {
		defer close(out)
		defer func() { _ = pubsub.Close() }()
		messages := pubsub.Channel(redis.WithChannelSize(4096))
		for {
			select {
			case <-ctx.Done():
				return
			case m, ok := <-messages:
				if !ok {
					return
				}
				queue, index, _ := strings.Cut(m.Payload, " ")
				shard, err := strconv.Atoi(index)
				if err != nil {
					continue
				}
				select {
				case out <- Shard{Queue: queue, Index: shard}:
				default: // the dispatcher is behind, and polls
				}
			}
		}
	}()
	return out
}
