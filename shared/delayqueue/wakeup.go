package delayqueue

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wakeChannel is the channel on which scripts publish that a shard has a new first job.
const wakeChannel = "sluice:wake"

// wakeMessage formats the message "<queue> <shard>".
func wakeMessage(queue string, shard int) string { return queue + " " + strconv.Itoa(shard) }

// Shard is one shard of a queue.
type Shard struct {
	Queue string
	Index int
}

// Wakeups returns a channel of the shards that have a new first job. A wake-up may be lost: poll
// the shards as well. The channel is closed when ctx ends.
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
			case m, open := <-messages:
				if !open {
					return
				}
				wake(out, m.Payload)
			}
		}
	}()
	return out
}

// wake forwards a message, or drops it if the dispatcher is behind: it polls then.
func wake(out chan<- Shard, message string) {
	queue, index, _ := strings.Cut(message, " ")
	shard, err := strconv.Atoi(index)
	if err != nil {
		return
	}
	select {
	case out <- Shard{Queue: queue, Index: shard}:
	default:
	}
}
