package ratelimit

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// invalidChannel tells every instance that a key's denial may have ended before its time; the message is "<policy>/<key>".
const invalidChannel = "sluice:limits:changed"

// relisten is the pause before a broken subscription is made again.
const relisten = 100 * time.Millisecond

// listen keeps the deny cache true to what other instances give back. The cache works only while the subscription does: an instance that
// cannot hear asks Redis.
func (d *denyCache) listen(ctx context.Context, client redis.UniversalClient) {
	pubsub := client.Subscribe(ctx, invalidChannel)
	defer func() { _ = pubsub.Close() }()
	for ctx.Err() == nil {
		message, err := pubsub.Receive(ctx)
		if err != nil {
			d.hear(false)
			select {
			case <-ctx.Done():
			case <-time.After(relisten):
			}
			continue
		}
		switch m := message.(type) {
		case *redis.Subscription:
			d.hear(true)
		case *redis.Message:
			policy, key, _ := strings.Cut(m.Payload, "/")
			d.forget(denyKey{policy, key})
		}
	}
}

// hear notes whether the subscription works. What was remembered before a break is not believed after it.
func (d *denyCache) hear(works bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hearing = works
	clear(d.entries)
}
