package ratelimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// invalidChannel is the Pub/Sub channel for keys whose cached denials are invalid because units
// were refunded or the key was reset. A message is "<policy>/<key>".
const invalidChannel = "sluice:limits:changed"

const (
	// resubscribeDelay is the pause between the end of a subscription and the next one.
	resubscribeDelay = 100 * time.Millisecond
	// maxSilence is the maximum time without a message before a PING probes the connection, and the
	// maximum time for the answer to the PING. A connection can be dead without an error, for
	// example after a Lambda freeze or behind a NAT gateway that dropped it.
	maxSilence = 2 * time.Second
)

// subscribe removes the entries of keys that other instances refund or reset, until ctx ends. While
// no subscription works, the cache is empty and every check goes to Redis.
func (d *denyCache) subscribe(ctx context.Context, client redis.UniversalClient) {
	for ctx.Err() == nil {
		d.receive(ctx, client)
		d.setSubscribed(false)
		select {
		case <-ctx.Done():
		case <-time.After(resubscribeDelay):
		}
	}
}

// receive subscribes to the channel. For each message, it removes the message's key from the cache.
// It returns when the subscription breaks.
func (d *denyCache) receive(ctx context.Context, client redis.UniversalClient) {
	pubsub := client.Subscribe(ctx, invalidChannel)
	defer func() { _ = pubsub.Close() }()

	probed := false
	for {
		message, err := pubsub.ReceiveTimeout(ctx, maxSilence)
		var silence net.Error
		switch {
		case errors.As(err, &silence) && silence.Timeout() && !probed && ctx.Err() == nil:
			if probed = true; pubsub.Ping(ctx) != nil {
				return
			}
			continue
		case err != nil:
			return
		}

		probed = false
		switch m := message.(type) {
		case *redis.Subscription:
			d.setSubscribed(true)
		case *redis.Message:
			policy, key, _ := strings.Cut(m.Payload, "/")
			d.forget(denyKey{policy, key})
		}
	}
}

// setSubscribed records whether the subscription works, and clears the cache: messages may have
// been lost since the entries were stored.
func (d *denyCache) setSubscribed(works bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribed = works
	clear(d.entries)
}
