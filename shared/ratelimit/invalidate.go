package ratelimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// invalidChannel tells every instance that a key's denial may have ended before its time; the
// message is "<policy>/<key>".
const invalidChannel = "sluice:limits:changed"

const (
	// relisten is the pause before a broken subscription is made again.
	relisten = 100 * time.Millisecond
	// beat is how long a subscription may be silent before it is asked for a sign of life, and how
	// long it has for that: after a freeze of the instance, or behind a gateway that forgot it, a
	// connection may be dead without an error.
	beat = 2 * time.Second
)

// listen keeps the deny cache true to what other instances give back. The cache works only while
// the subscription does: an instance that cannot hear asks Redis.
func (d *denyCache) listen(ctx context.Context, client redis.UniversalClient) {
	for ctx.Err() == nil {
		d.follow(ctx, client)
		d.hear(false)
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

// follow subscribes, and returns when the subscription breaks.
func (d *denyCache) follow(ctx context.Context, client redis.UniversalClient) {
	pubsub := client.Subscribe(ctx, invalidChannel)
	defer func() { _ = pubsub.Close() }()
	asked := false
	for {
		message, err := pubsub.ReceiveTimeout(ctx, beat)
		var silence net.Error
		switch {
		case errors.As(err, &silence) && silence.Timeout() && !asked && ctx.Err() == nil:
			if asked = true; pubsub.Ping(ctx) != nil {
				return
			}
			continue
		case err != nil:
			return
		}
		asked = false
		switch m := message.(type) {
		case *redis.Subscription:
			d.hear(true)
		case *redis.Message:
			policy, key, _ := strings.Cut(m.Payload, "/")
			d.forget(denyKey{policy, key})
		}
	}
}

// hear notes whether the subscription works. What was remembered before a break is not believed
// after it.
func (d *denyCache) hear(works bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hearing = works
	clear(d.entries)
}
