package redisconn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// BreakerConfig tunes the circuit breaker.
type BreakerConfig struct {
	// Failures is the number of consecutive failures that open the breaker. Default 3.
	Failures int
	// ProbeEvery is the interval between pings of Redis while the breaker is open. Default 250 ms.
	ProbeEvery time.Duration
	// ProbeWait is the maximum time that the call that starts a ping waits for the answer. Default
	// 40 ms.
	ProbeWait time.Duration
}

func (c BreakerConfig) withDefaults() BreakerConfig {
	if c.Failures == 0 {
		c.Failures = 3
	}
	if c.ProbeEvery == 0 {
		c.ProbeEvery = 250 * time.Millisecond
	}
	if c.ProbeWait == 0 {
		c.ProbeWait = 40 * time.Millisecond
	}
	return c
}

var errOpen = errors.New("the circuit breaker is open")

// breaker makes calls fail immediately while the store is unavailable. It opens after a number of
// consecutive failures. While it is open, one call per ProbeEvery starts a ping in the background
// and waits for the answer up to ProbeWait; every other call fails immediately. Libraries with a
// half-open state use a real request as the probe; if Redis is still unavailable, that request
// waits for the whole call timeout. See docs/decisions/0001.
type breaker struct {
	cfg         BreakerConfig
	pingTimeout time.Duration
	ping        func(context.Context) error

	mu        sync.Mutex
	failures  int
	open      bool
	nextProbe time.Time
	probe     chan struct{} // non-nil while a ping is in flight; closed when it ends
}

func newBreaker(cfg BreakerConfig, pingTimeout time.Duration, ping func(context.Context) error) *breaker {
	return &breaker{cfg: cfg.withDefaults(), pingTimeout: pingTimeout, ping: ping}
}

// admit returns nil if a call may go to the store.
func (b *breaker) admit(ctx context.Context) error {
	b.mu.Lock()
	if !b.open {
		b.mu.Unlock()
		return nil
	}

	now := time.Now()
	if b.probe != nil || now.Before(b.nextProbe) {
		b.mu.Unlock()
		return fault.Unavailable("redis", errOpen)
	}
	b.nextProbe = now.Add(b.cfg.ProbeEvery)
	b.probe = make(chan struct{})
	probe := b.probe
	go b.run(probe) //nolint:gosec,contextcheck // the probe outlives the request that starts it
	b.mu.Unlock()

	return b.await(ctx, probe)
}

// await waits for the probe and returns nil if it closed the breaker.
func (b *breaker) await(ctx context.Context, probe chan struct{}) error {
	timer := time.NewTimer(b.cfg.ProbeWait)
	defer timer.Stop()
	select {
	case <-probe:
	case <-timer.C:
	case <-ctx.Done():
	}
	if b.isOpen() {
		return fault.Unavailable("redis", errOpen)
	}
	return nil
}

// run pings the store and closes the breaker if it answers.
func (b *breaker) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), b.pingTimeout)
	defer cancel()
	err := b.ping(ctx)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.probe = nil
	if err == nil {
		b.open, b.failures = false, 0
	}
	close(done)
}

// record counts the outcome of an admitted call. It ignores a call whose context has ended, because
// the outcome says nothing about the store.
func (b *breaker) record(ctx context.Context, err error) {
	if ended(ctx) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()

	if fault.CodeOf(err) != fault.StoreUnavailable {
		b.failures, b.open = 0, false
		return
	}
	b.failures++
	if b.failures >= b.cfg.Failures && !b.open {
		b.open, b.nextProbe = true, time.Now().Add(b.cfg.ProbeEvery)
	}
}

func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}
