package main

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// forgetConcurrency bounds the removals of one batch at once.
const forgetConcurrency = 16

// take takes jobs in. Durable ones are written to the outbox first; what Redis does not take because it is away goes to the outbox. A job that neither takes
// has an error, and was not taken in, or may be asked for again under the same id.
func (a *api) take(ctx context.Context, queue string, jobs []delayqueue.Job) (results []delayqueue.Enqueued, errs []error, degraded bool) {
	results, errs = make([]delayqueue.Enqueued, len(jobs)), make([]error, len(jobs))
	var durable, plain []int
	for i := range jobs {
		if jobs[i].Durable {
			durable = append(durable, i)
		} else {
			plain = append(plain, i)
		}
	}
	degraded = a.takeDurable(ctx, queue, jobs, durable, results, errs)
	degraded = a.takePlain(ctx, queue, jobs, plain, results, errs) || degraded
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

func (a *api) takePlain(ctx context.Context, queue string, jobs []delayqueue.Job, members []int, results []delayqueue.Enqueued, errs []error) bool {
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

// takeDurable writes to the outbox, and then to Redis. What the outbox knows already is not written to Redis: the caller's content may be another one,
// and the dispatcher brings the outbox's there.
func (a *api) takeDurable(ctx context.Context, queue string, jobs []delayqueue.Job, members []int, results []delayqueue.Enqueued, errs []error) bool {
	if len(members) == 0 {
		return false
	}
	written, failed := a.outbox.Put(ctx, queue, pick(jobs, members), true)
	var fresh []int
	for k, i := range members {
		results[i], errs[i] = written[k], failed[k]
		if failed[k] == nil && !written[k].Duplicate {
			jobs[i].RunAtMS, jobs[i].Delay = written[k].RunAtMS, 0
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

// forget takes out of the outbox what was only just written there, and what Redis turned out to have taken in before without it: a later outage must
// not send it again. What cannot be removed now is removed by the dispatcher.
func (a *api) forget(ctx context.Context, queue string, ids []string) {
	slots := make(chan struct{}, forgetConcurrency)
	var wait sync.WaitGroup
	for _, id := range ids {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := a.outbox.RemoveID(ctx, queue, id); err != nil {
				a.log.WarnContext(ctx, "a known job stays in the outbox for now", "queue", queue, "job", id, "cause", err.Error())
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
