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
	// Failures in a row that open it. Default 3.
	Failures int
	// ProbeEvery is how long it stays open before a call asks the store again. Default 250 ms.
	ProbeEvery time.Duration
	// ProbeWait is the longest that such a call waits for the probe. Default 40 ms.
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

// breaker makes a dead store cost nothing. After some failures in a row it opens; then calls fail
// at once, but for one every ProbeEvery, which pings the store in the background and waits for that
// no longer than ProbeWait. (A library's half-open state sends a whole request as the probe: that
// one would pay the full call timeout.)
type breaker struct {
	cfg       BreakerConfig
	pingLimit time.Duration
	ping      func(context.Context) error

	mu        sync.Mutex
	failures  int
	open      bool
	nextProbe time.Time
	probe     chan struct{} // non-nil while a ping is under way; closed when it ends
}

func newBreaker(cfg BreakerConfig, pingLimit time.Duration, ping func(context.Context) error) *breaker {
	return &breaker{cfg: cfg.withDefaults(), pingLimit: pingLimit, ping: ping}
}

// admit returns nil when a call may go to the store.
func (b *breaker) admit(ctx context.Context) error {
	b.mu.Lock()
	if !b.open {
		b.mu.Unlock()
		return nil
	}
	now := time.Now()
	if b.probe == nil && now.Before(b.nextProbe) {
		b.mu.Unlock()
		return fault.Unavailable("redis", errOpen)
	}
	started := b.probe == nil
	if started {
		b.nextProbe = now.Add(b.cfg.ProbeEvery)
		b.probe = make(chan struct{})
		go b.run(b.probe) //nolint:gosec,contextcheck // the probe outlives the request that starts it
	}
	probe := b.probe
	b.mu.Unlock()
	if !started {
		return fault.Unavailable("redis", errOpen)
	}
	return b.await(ctx, probe)
}

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

func (b *breaker) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), b.pingLimit)
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

// record counts the outcome of an admitted call. One that its own caller ended says nothing about
// the store.
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
