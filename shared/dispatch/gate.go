package dispatch

import (
	"context"
	"sync"
	"time"
)

// gate blocks claims while it is shut. It is shut at the start of a run and during an outage of
// Redis, until the outbox has been moved to Redis. Otherwise a job that was sent from the outbox
// would be sent again from its copy in Redis.
type gate struct {
	mu     sync.Mutex
	open   bool
	opened chan struct{} // closed while the gate is open
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// set opens or shuts the gate and reports whether the gate changed.
func (g *gate) set(open bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == open {
		return false
	}
	g.open = open
	if open {
		close(g.opened)
	} else {
		g.opened = make(chan struct{})
	}
	return true
}

// wait waits until the gate is open. It returns false if ctx ends first.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ticks delivers a tick immediately and then after every interval.
type ticks struct {
	every time.Duration
	began bool
}

func newTicks(every time.Duration) *ticks { return &ticks{every: every} }

// next waits for the next tick. It returns false if ctx ends first.
func (t *ticks) next(ctx context.Context) bool {
	if !t.began {
		t.began = true
		return ctx.Err() == nil
	}
	return sleep(ctx, t.every)
}

// sleep waits for d. It returns false if ctx ends first.
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
