package dispatch

import (
	"context"
	"sync"
	"time"
)

// gate holds claims back: at the start and after an outage, until the outbox has been returned to
// Redis. Else a job that was sent from the outbox, and that is in Redis too, would be sent twice.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
	is   bool
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

// set opens or shuts the gate and reports whether that was a change.
func (g *gate) set(open bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.is == open {
		return false
	}
	g.is = open
	if open {
		close(g.open)
	} else {
		g.open = make(chan struct{})
	}
	return true
}

// pass waits until the gate is open, and reports false when ctx ends first.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ticks beats at once and then every interval.
type ticks struct {
	every time.Duration
	began bool
}

func newTicks(every time.Duration) *ticks { return &ticks{every: every} }

func (t *ticks) next(ctx context.Context) bool {
	if !t.began {
		t.began = true
		return ctx.Err() == nil
	}
	return sleep(ctx, t.every)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
