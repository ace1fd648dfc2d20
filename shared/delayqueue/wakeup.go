package delayqueue

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wakeChannel is the Redis channel for wake-up messages. Scripts publish one when a job gets the
// earliest due time in its shard.
const wakeChannel = "sluice:wake"

// wakeMessage formats the message "<queue> <shard>".
func wakeMessage(queue string, shard int) string { return queue + " " + strconv.Itoa(shard) }

// Shard is one shard of a queue.
type Shard struct {
	Queue string
	Index int
}

// Wakeups returns a channel that receives a shard when a job gets the earliest due time in the
// shard, and when a pause of the queue may have ended. Wake-ups can be lost, so the caller must
// also poll the shards. The channel is closed when ctx ends.
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

// wake forwards a message to out. If out is full, it drops the message, because the dispatcher also
// polls.
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
