// Package ticker invokes the dispatcher at a fixed interval, like EventBridge Scheduler.
package ticker

import (
	"context"
	"sync"
	"time"
)

// Invoke runs one invocation and returns when it ends.
type Invoke func(context.Context) error

// Ticker calls its Invoke function immediately and then once per interval. It does not wait for the
// previous invocation, so invocations can overlap, as on AWS.
type Ticker struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Start starts a Ticker. Until [Ticker.Stop], it calls failed(err) for each invocation that returns
// an error.
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

// Stop stops the Ticker and cancels the invocations in flight.
func (t *Ticker) Stop() {
	t.cancel()
	t.wait.Wait()
}
