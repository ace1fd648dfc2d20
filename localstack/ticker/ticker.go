// Package ticker invokes the dispatcher as EventBridge Scheduler does. It is a stand-in: no
// schedule fires on a laptop.
package ticker

import (
	"context"
	"sync"
	"time"
)

// Invoke starts one invocation and waits for its end.
type Invoke func(context.Context) error

// Ticker invokes once at the start and then every interval, without waiting for the invocation
// before: they overlap, as they do at AWS.
type Ticker struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Start runs a Ticker. failed is told of invocations that ended in an error.
func Start(interval time.Duration, invoke Invoke, failed func(error)) *Ticker {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Ticker{cancel: cancel}
	t.wait.Go(func() {
		clock := time.NewTicker(interval)
		defer clock.Stop()
		for {
			t.wait.Go(func() {
				if err := invoke(ctx); err != nil && ctx.Err() == nil {
					failed(err)
				}
			})
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			}
		}
	})
	return t
}

// Stop ends it; invocations that are under way are given up.
func (t *Ticker) Stop() {
	t.cancel()
	t.wait.Wait()
}
