package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/fault"
)

// Result is the outcome of enqueuing one job. After the error store_unavailable, the job may or may
// not be stored: enqueue it again with the same ID.
type Result struct {
	delayqueue.Result

	// Degraded reports that the outbox accepted the job and Redis did not.
	Degraded bool
}

// Enqueue enqueues jobs of one queue and returns a result for each, in order. Each job succeeds or
// fails independently of the others. Durable jobs are written to the outbox first and then to
// Redis; plain jobs are written to Redis, or to the outbox if Redis is unavailable.
//
// Durable and plain jobs are written concurrently, so that a mixed batch waits for an unresponsive
// Redis only once. A plain job that shares its ID with a durable job of the batch is written after
// the durable job, and becomes a duplicate of it.
func (s *Service) Enqueue(ctx context.Context, queue string, jobs []delayqueue.Job) []Result {
	results := make([]Result, len(jobs))
	for i := range jobs {
		results[i].Job, results[i].Err = jobs[i].Normalize()
	}

	durable, plain, plainAfter := split(results)
	concurrently(
		func() { s.enqueuePlain(ctx, queue, plain) },
		func() { s.enqueueDurable(ctx, queue, durable) },
	)
	s.enqueuePlain(ctx, queue, plainAfter)
	return results
}

// split groups the valid jobs: durable jobs, plain jobs, and plain jobs that share an ID with a
// durable job (plainAfter).
func split(results []Result) (durable, plain, plainAfter []*Result) {
	durableIDs := make(map[string]bool)
	for i := range results {
		if r := &results[i]; r.Err == nil && r.Job.Durable {
			durable = append(durable, r)
			durableIDs[r.Job.ID] = true
		}
	}
	for i := range results {
		r := &results[i]
		switch {
		case r.Err != nil || r.Job.Durable:
		case durableIDs[r.Job.ID]:
			plainAfter = append(plainAfter, r)
		default:
			plain = append(plain, r)
		}
	}
	return durable, plain, plainAfter
}

// concurrently runs two functions and returns when both have returned. If first panics,
// concurrently panics with the value and the stack of that panic.
func concurrently(first, second func()) {
	panicked := make(chan any, 1)
	go func() {
		defer func() {
			p := recover()
			if p != nil {
				p = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			panicked <- p
		}()
		first()
	}()
	defer func() {
		if p := <-panicked; p != nil {
			panic(p)
		}
	}()
	second()
}

func (s *Service) enqueuePlain(ctx context.Context, queue string, results []*Result) {
	var refused []*Result
	for i, inRedis := range s.enqueueRedis(ctx, queue, results) {
		r := results[i]
		r.Result = inRedis
		if s.outbox != nil && fault.CodeOf(r.Err) == fault.StoreUnavailable {
			refused = append(refused, r)
		}
	}

	forEach(s.fanOut, refused, func(r *Result) {
		r.Enqueued, r.Err = s.outbox.Put(ctx, queue, r.Job, outbox.PutOptions{})
		r.Degraded = r.Err == nil
	})
}

// enqueueDurable writes jobs to the outbox and then to Redis. If the outbox already has a job with
// the same ID, enqueueDurable does not write the new job to Redis, because the existing job may
// have different content. The dispatcher moves the existing job to Redis.
func (s *Service) enqueueDurable(ctx context.Context, queue string, results []*Result) {
	if s.outbox == nil {
		for _, r := range results {
			r.Err = errors.New("a durable job needs an outbox")
		}
		return
	}
	forEach(s.fanOut, results, func(r *Result) {
		r.Enqueued, r.Err = s.outbox.Put(ctx, queue, r.Job, outbox.PutOptions{Durable: true, Hold: s.hold})
	})
	var added []*Result
	for _, r := range results {
		if r.Err == nil && !r.Enqueued.Duplicate {
			r.Job.RunAt, r.Job.Delay = r.Enqueued.RunAt, 0 // the same due time in both stores
			added = append(added, r)
		}
	}

	var superfluous []*Result
	for i, inRedis := range s.enqueueRedis(ctx, queue, added) {
		r := added[i]
		switch {
		case inRedis.Err != nil:
			r.Degraded = true // the dispatcher moves the job to Redis
		case inRedis.Enqueued.Duplicate && !isCopyOf(inRedis.Enqueued):
			r.Enqueued = inRedis.Enqueued
			superfluous = append(superfluous, r)
		default:
			r.Enqueued = inRedis.Enqueued
			r.Enqueued.Duplicate = false
		}
	}
	s.removeSuperfluous(ctx, queue, superfluous)
}

// isCopyOf reports whether the job in Redis is a copy of the job that was just added to the outbox.
// Redis has such a copy if a dispatcher moved the job first, or if the driver sent the write again
// after a lost answer.
func isCopyOf(inRedis delayqueue.Enqueued) bool {
	return inRedis.Durable && !inRedis.Differs && awaitsFirstSend(inRedis)
}

// awaitsFirstSend reports whether a job still waits for SQS to accept its first attempt.
func awaitsFirstSend(e delayqueue.Enqueued) bool {
	return e.State == delayqueue.Scheduled && e.Attempt == 0 || e.State == delayqueue.Dispatching && e.Attempt <= 1
}

// removeSuperfluous removes outbox items that were just added although Redis already had a job with
// their ID. Otherwise the dispatcher would send the items as duplicates during a later outage of
// Redis. If a removal fails, the dispatcher removes the item later.
func (s *Service) removeSuperfluous(ctx context.Context, queue string, results []*Result) {
	forEach(s.fanOut, results, func(r *Result) {
		if err := s.outbox.RemoveID(ctx, queue, r.Job.ID); err != nil {
			s.log.WarnContext(ctx, "a duplicate job stays in the outbox until the dispatcher removes it",
				"queue", queue, "job", r.Job.ID, "cause", err.Error())
		}
	})
}

func (s *Service) enqueueRedis(ctx context.Context, queue string, results []*Result) []delayqueue.Result {
	jobs := make([]delayqueue.Job, len(results))
	for i, r := range results {
		jobs[i] = r.Job
	}
	return s.queues.EnqueueAccepted(ctx, queue, jobs)
}

// forEach calls the function do once for each item. At most limit calls run concurrently.
func forEach[T any](limit int, items []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, item := range items {
		group.Go(func() error {
			do(item)
			return nil
		})
	}
	_ = group.Wait()
}
