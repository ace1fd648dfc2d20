// Package load makes calls at a fixed rate or with a fixed concurrency, and measures their latency.
package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Plan describes a load.
type Plan struct {
	// Rate is the number of calls that begin per second. Zero means as many as Concurrency allows.
	Rate float64
	// Concurrency is the maximum number of concurrent calls.
	Concurrency int
	// Duration is the maximum duration of the load.
	Duration time.Duration
	// Count is the maximum number of calls. Zero means no limit.
	Count int
	// Progress is called about once a second with the number of calls that have ended. It may be
	// nil.
	Progress func(done int, took time.Duration)
}

// Result is the measurement of a load.
type Result struct {
	Calls int `json:"calls"`
	// Errors counts failed calls by the name of their error.
	Errors  map[string]int `json:"errors,omitempty"`
	Seconds float64        `json:"seconds"`
	PerSec  float64        `json:"per_second"`

	// P50, P90, P99 and Max are latencies in ms of the calls that succeeded. With a rate, a latency
	// is measured from the scheduled start of the call, so that it includes stalls.
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Run runs call(ctx, 0), call(ctx, 1) and so on until the plan or ctx ends, and waits for the last
// one. It counts each error under the text that the function name returns for it.
func Run(ctx context.Context, plan Plan, call func(ctx context.Context, n int) error, name func(error) string) Result {
	bounded, cancel := context.WithTimeout(ctx, plan.Duration)
	defer cancel()

	r := &recorder{errors: make(map[string]int), name: name}
	started := time.Now()
	stop := r.report(started, plan.Progress) //nolint:contextcheck // ends with the last call, not with ctx

	var wait sync.WaitGroup
	next := make(chan ticket)
	for range plan.Concurrency {
		wait.Go(func() {
			for t := range next {
				r.record(t.due, call(context.WithoutCancel(ctx), t.n))
			}
		})
	}

	schedule(bounded, plan, started, next)
	close(next)
	wait.Wait()
	stop()
	return r.result(time.Since(started))
}

// ticket is a call with its scheduled start.
type ticket struct {
	n   int
	due time.Time
}

// schedule sends tickets at the rate of the plan.
func schedule(ctx context.Context, plan Plan, started time.Time, next chan<- ticket) {
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

// report calls progress once a second until the caller calls stop.
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

// quantile returns the q-quantile of sorted numbers by the nearest rank. It returns 0 if there are
// no numbers.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
