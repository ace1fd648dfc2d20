// Package load puts a measured load on something: at a rate, or with so many calls at once, bounded
// in time and in number.
package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Plan says how much load to put on, and for how long.
type Plan struct {
	// Rate is how many calls begin in a second; zero is as many as Concurrency allows.
	Rate float64
	// Concurrency is how many are under way at once, at most.
	Concurrency int
	// Duration and Count end the load, whichever comes first; a zero Count is no bound.
	Duration time.Duration
	Count    int
	// Progress is told how many calls have ended, about once a second. Nil: nobody.
	Progress func(done int, took time.Duration)
}

// Result is what came of it.
type Result struct {
	Calls   int            `json:"calls"`
	Errors  map[string]int `json:"errors,omitempty"` // by what failed
	Seconds float64        `json:"seconds"`
	PerSec  float64        `json:"per_second"`
	// Latencies in ms of the calls that succeeded; with a rate they count from when a call was to
	// begin, so that a stalled API shows.
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Run calls until the plan, or ctx, ends. call is given a number that no other call has; name says
// what an error is counted as.
func Run(ctx context.Context, plan Plan, call func(ctx context.Context, n int) error, name func(error) string) Result {
	bounded, cancel := context.WithTimeout(ctx, plan.Duration)
	defer cancel()
	r := &recorder{errors: make(map[string]int), name: name}
	started := time.Now()
	stop := r.report(started, plan.Progress) //nolint:contextcheck // it ends with the last call, not with ctx
	var wait sync.WaitGroup
	next := make(chan ticket)
	for range plan.Concurrency {
		wait.Go(func() {
			for t := range next {
				r.record(t.due, call(context.WithoutCancel(ctx), t.n))
			}
		})
	}
	hand(bounded, plan, started, next)
	close(next)
	wait.Wait()
	stop()
	return r.result(time.Since(started))
}

// ticket is one call and when it was to begin.
type ticket struct {
	n   int
	due time.Time
}

// hand gives out tickets, at the plan's rate.
func hand(ctx context.Context, plan Plan, started time.Time, next chan<- ticket) {
	for n := 0; plan.Count == 0 || n < plan.Count; n++ {
		due := time.Now()
		if plan.Rate > 0 {
			due = started.Add(time.Duration(float64(n) / plan.Rate * float64(time.Second)))
			if !sleepUntil(ctx, due) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case next <- ticket{n, due}:
		}
	}
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

type recorder struct {
	name func(error) string

	mu     sync.Mutex
	took   []float64
	calls  int
	errors map[string]int
}

func (r *recorder) record(due time.Time, err error) {
	took := float64(time.Since(due).Microseconds()) / 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if err != nil {
		r.errors[r.name(err)]++
		return
	}
	r.took = append(r.took, took)
}

// report tells of the progress once a second until it is stopped.
func (r *recorder) report(started time.Time, progress func(int, time.Duration)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		for clock := time.NewTicker(time.Second); ; {
			select {
			case <-ctx.Done():
				clock.Stop()
				return
			case <-clock.C:
				r.mu.Lock()
				calls := r.calls
				r.mu.Unlock()
				progress(calls, time.Since(started))
			}
		}
	})
	return func() { cancel(errors.New("the load has ended")); wait.Wait() }
}

func (r *recorder) result(took time.Duration) Result {
	slices.Sort(r.took)
	return Result{
		Calls: r.calls, Errors: r.errors, Seconds: took.Seconds(), PerSec: float64(len(r.took)) / took.Seconds(),
		P50: quantile(r.took, 0.5), P90: quantile(r.took, 0.9), P99: quantile(r.took, 0.99), Max: quantile(r.took, 1),
	}
}

// quantile is by the nearest rank; sorted may be empty.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
