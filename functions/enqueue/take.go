package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// forgetConcurrency bounds the removals of one batch at once.
const forgetConcurrency = 16

// take takes jobs in. Durable ones are written to the outbox first; what Redis does not take
// because it is away goes to the outbox. A job that neither takes has an error, and was not taken
// in, or may be asked for again under the same id.
//
// Durable and plain jobs are taken in at once, so that a batch of both waits for a Redis that hangs
// no longer than one of either.
func (a *api) take(ctx context.Context, queue string,
	jobs []delayqueue.Job) (results []delayqueue.Enqueued, errs []error, degraded bool) {
	results, errs = make([]delayqueue.Enqueued, len(jobs)), make([]error, len(jobs))
	durable, plain, after := divide(jobs)
	var fromPlain, fromDurable bool
	both(
		func() { fromPlain = a.takePlain(ctx, queue, jobs, plain, results, errs) },
		func() { fromDurable = a.takeDurable(ctx, queue, jobs, durable, results, errs) },
	)
	degraded = a.takePlain(ctx, queue, jobs, after, results, errs) || fromPlain || fromDurable
	taken := 0
	for i := range jobs {
		if errs[i] == nil && !results[i].Duplicate {
			taken++
		}
	}
	metrics := []telemetry.Metric{telemetry.One("enqueued", telemetry.Count, float64(taken))}
	if degraded {
		metrics = append(metrics, telemetry.One("degraded", telemetry.Count, 1))
	}
	a.metrics.Emit(map[string]string{"queue": queue}, metrics...)
	return results, errs, degraded
}

// both runs two functions at once, and ends when both have. A panic of the first becomes one of the
// caller's, with the stack of where it was.
func both(first, second func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() {
			p := recover()
			if p != nil {
				p = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			ended <- p
		}()
		first()
	}()
	defer func() {
		if p := <-ended; p != nil {
			panic(p)
		}
	}()
	second()
}

// divide sorts jobs by how they are taken in. Plain ones whose id a durable one of the same batch
// has come after it: the id is the durable one's.
func divide(jobs []delayqueue.Job) (durable, plain, after []int) {
	ids := make(map[string]bool)
	for i := range jobs {
		if jobs[i].Durable {
			durable, ids[jobs[i].ID] = append(durable, i), true
		}
	}
	for i := range jobs {
		switch {
		case jobs[i].Durable:
		case ids[jobs[i].ID]:
			after = append(after, i)
		default:
			plain = append(plain, i)
		}
	}
	return durable, plain, after
}

func (a *api) takePlain(ctx context.Context, queue string, jobs []delayqueue.Job, members []int,
	results []delayqueue.Enqueued, errs []error) bool {
	if len(members) == 0 {
		return false
	}
	found, failed := a.queues.Enqueue(ctx, queue, pick(jobs, members))
	var away []int
	for k, i := range members {
		results[i], errs[i] = found[k], failed[k]
		if fault.CodeOf(failed[k]) == fault.StoreUnavailable {
			away = append(away, i)
		}
	}
	if len(away) == 0 {
		return false
	}
	found, failed = a.outbox.Put(ctx, queue, pick(jobs, away), false)
	degraded := false
	for k, i := range away {
		results[i], errs[i] = found[k], failed[k]
		degraded = degraded || failed[k] == nil
	}
	return degraded
}

// takeDurable writes to the outbox, and then to Redis. What the outbox knows already is not written
// to Redis: the caller's content may be another one, and the dispatcher brings the outbox's there.
func (a *api) takeDurable(ctx context.Context, queue string, jobs []delayqueue.Job, members []int,
	results []delayqueue.Enqueued, errs []error) bool {
	if len(members) == 0 {
		return false
	}
	written, failed := a.outbox.Put(ctx, queue, pick(jobs, members), true)
	var fresh []int
	for k, i := range members {
		results[i], errs[i] = written[k], failed[k]
		if failed[k] == nil && !written[k].Duplicate {
			jobs[i].RunAt, jobs[i].Delay = written[k].RunAt, 0
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return false
	}
	found, failed := a.queues.Enqueue(ctx, queue, pick(jobs, fresh))
	degraded := false
	var known []string
	for k, i := range fresh {
		if failed[k] != nil {
			degraded = true // the outbox has it; the dispatcher brings it to Redis
			continue
		}
		results[i] = found[k]
		if found[k].Duplicate && (!found[k].Durable || found[k].State != delayqueue.Scheduled) {
			known = append(known, found[k].ID)
		}
	}
	a.forget(ctx, queue, known)
	return degraded
}

// forget takes out of the outbox what was only just written there, and what Redis turned out to
// have taken in before without it: a later outage must not send it again. What cannot be removed
// now is removed by the dispatcher.
func (a *api) forget(ctx context.Context, queue string, ids []string) {
	slots := make(chan struct{}, forgetConcurrency)
	var wait sync.WaitGroup
	for _, id := range ids {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := a.outbox.RemoveID(ctx, queue, id); err != nil {
				a.log.WarnContext(ctx, "a known job stays in the outbox for now", "queue", queue, "job", id, "cause",
					err.Error())
			}
		})
	}
	wait.Wait()
}

func pick(jobs []delayqueue.Job, members []int) []delayqueue.Job {
	out := make([]delayqueue.Job, len(members))
	for k, i := range members {
		out[k] = jobs[i]
	}
	return out
}
