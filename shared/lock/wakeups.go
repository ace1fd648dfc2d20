package lock

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// wakeups delivers wake-ups to all waiters of this process over one pub/sub subscription. A release
// publishes the call ID of the first waiter on the lock's channel. The name of the channel is the
// lock's state key. If the message is lost, the waiter tries again at its next poll.
type wakeups struct {
	client redis.UniversalClient

	mu      sync.Mutex
	pubsub  *redis.PubSub
	waiting map[string]map[string]chan struct{} // channel → call → wake-up
}

func newWakeups(client redis.UniversalClient) *wakeups {
	return &wakeups{client: client, waiting: make(map[string]map[string]chan struct{})}
}

// subscribe returns a channel that receives a value when the call is woken, and a function that
// ends the subscription.
func (w *wakeups) subscribe(ctx context.Context, channel, call string) (woken <-chan struct{}, unsubscribe func()) {
	w.mu.Lock()
	defer w.mu.Unlock()

	wake := make(chan struct{}, 1)
	if w.waiting[channel] == nil {
		w.waiting[channel] = make(map[string]chan struct{})
		w.listen(ctx, channel)
	}
	w.waiting[channel][call] = wake
	return wake, func() { w.unsubscribe(context.WithoutCancel(ctx), channel, call) }
}

// listen adds a channel to the subscription. The subscription outlives the Acquire that starts it.
// The caller of listen holds the mutex.
func (w *wakeups) listen(ctx context.Context, channel string) {
	ctx = context.WithoutCancel(ctx)
	if w.pubsub == nil {
		w.pubsub = w.client.Subscribe(ctx)
		go w.receive(w.pubsub.Channel(redis.WithChannelSize(1024)))
	}
	_ = w.pubsub.Subscribe(ctx, channel) // after an error, go-redis subscribes when it reconnects
}

func (w *wakeups) receive(messages <-chan *redis.Message) {
	for m := range messages {
		w.wake(m.Channel, m.Payload)
	}
}

// wake wakes a call if the call waits in this process and has no pending wake-up.
func (w *wakeups) wake(channel, call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.waiting[channel][call] <- struct{}{}: // for an unknown call the channel is nil, so default runs
	default:
	}
}

func (w *wakeups) unsubscribe(ctx context.Context, channel, call string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.waiting[channel], call)
	if len(w.waiting[channel]) > 0 {
		return
	}
	delete(w.waiting, channel)
	if w.pubsub != nil {
		_ = w.pubsub.Unsubscribe(ctx, channel)
	}
}

func (w *wakeups) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.pubsub == nil {
		return nil
	}
	if err := w.pubsub.Close(); err != nil {
		return fmt.Errorf("error closing the subscription to wake-ups: %w", err)
	}
	w.pubsub = nil
	return nil
}
