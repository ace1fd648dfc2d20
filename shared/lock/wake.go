package lock

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// wakeups hears of releases for every waiter of this process over one subscription. A release
// publishes the first waiter's id on a channel that is named like the lock. A message that is lost
// costs a poll, no more.
type wakeups struct {
	client redis.UniversalClient

	mu      sync.Mutex
	pubsub  *redis.PubSub
	waiting map[string]map[string]chan struct{} // channel → waiter's id → its bell
}

func newWakeups(client redis.UniversalClient) *wakeups {
	return &wakeups{client: client, waiting: make(map[string]map[string]chan struct{})}
}

// subscribe returns a bell that rings when the waiter is woken, and what ends the subscription.
func (w *wakeups) subscribe(ctx context.Context, channel, id string) (bell <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ring := make(chan struct{}, 1)
	if w.waiting[channel] == nil {
		w.waiting[channel] = make(map[string]chan struct{})
		w.listen(ctx, channel)
	}
	w.waiting[channel][id] = ring
	return ring, func() { w.unsubscribe(context.WithoutCancel(ctx), channel, id) }
}

// listen needs the lock. The subscription outlives the call that begins it.
func (w *wakeups) listen(ctx context.Context, channel string) {
	ctx = context.WithoutCancel(ctx)
	if w.pubsub == nil {
		w.pubsub = w.client.Subscribe(ctx)
		go w.receive(w.pubsub.Channel(redis.WithChannelSize(1024)))
	}
	_ = w.pubsub.Subscribe(ctx, channel) // on an error the driver subscribes again when it reconnects
}

func (w *wakeups) receive(messages <-chan *redis.Message) {
	for m := range messages {
		w.mu.Lock()
		if ring := w.waiting[m.Channel][m.Payload]; ring != nil {
			select {
			case ring <- struct{}{}:
			default:
			}
		}
		w.mu.Unlock()
	}
}

func (w *wakeups) unsubscribe(ctx context.Context, channel, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting[channel], id)
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
		return fmt.Errorf("error closing the wake-up subscription: %w", err)
	}
	w.pubsub = nil
	return nil
}
