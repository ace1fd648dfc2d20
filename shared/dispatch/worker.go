package dispatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// maintainBatch is the limit of one call to Maintain: at most 500 lapsed leases, 500 ack
	// timeouts and 500 finished jobs.
	maintainBatch = 500
	// coalesce is the minimum pause after a claim that returned jobs but was not full, unless a
	// wake-up arrives. If many jobs become due each second, the pause lets one claim return several
	// of them.
	coalesce = time.Millisecond
	// recordRetry is the pause before the first retry to record an outcome in Redis. It doubles
	// with each retry, up to 1 s.
	recordRetry = 50 * time.Millisecond
	// refusedFirst and refusedMax are the first and the maximum backoff of a job that SQS did not
	// accept.
	refusedFirst = 250 * time.Millisecond
	refusedMax   = time.Minute
)

// serve runs a worker for each shard of each queue. If the shard count was higher in the past, this
// includes the shards that are no longer in use but may still hold jobs.
func (r *run) serve(ctx context.Context) {
	if !r.gate.wait(ctx) {
		return
	}
	wakeups := make(map[delayqueue.Shard]chan struct{})
	var workers sync.WaitGroup
	for queue, url := range r.cfg.Queues {
		for shard := range r.queues.AllShards() {
			w := &worker{
				run: r, queue: queue, url: url, shard: shard, wakeup: make(chan struct{}, 1),
				inFlight: semaphore.NewWeighted(int64(r.cfg.InFlight)),
			}
			wakeups[delayqueue.Shard{Queue: queue, Index: shard}] = w.wakeup
			workers.Go(func() { w.work(ctx) })
		}
	}

	for shard := range r.queues.Wakeups(ctx) {
		select {
		case wakeups[shard] <- struct{}{}:
		default: // no worker serves the shard, or its wake-up is pending already
		}
	}
	workers.Wait()
}

// worker serves one shard.
type worker struct {
	*run
	queue, url string
	shard      int
	wakeup     chan struct{}
	inFlight   *semaphore.Weighted
	maintained time.Time
}

func (w *worker) work(ctx context.Context) {
	for w.gate.wait(ctx) {
		w.maintain(ctx)
		pause, err := w.claim(ctx)
		if err != nil {
			w.failed(ctx, err)
			pause = w.cfg.Poll/4 + rand.N(w.cfg.Poll/4)
		}
		if pause > 0 && !w.rest(ctx, pause) {
			return
		}
	}
}

// rest waits for a wake-up, but no longer than the shorter of pause and Poll. It returns false if
// ctx ends.
func (w *worker) rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(min(pause, w.cfg.Poll))
	defer timer.Stop()
	select {
	case <-w.wakeup:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// failed logs an error, and shuts the gate if Redis is unavailable. The worker continues.
func (w *worker) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if fault.CodeOf(err) != fault.StoreUnavailable {
		w.log.Error("a shard cannot be served", "queue", w.queue, "shard", w.shard, "cause", err.Error())
		return
	}
	if w.gate.set(false) {
		w.log.Error("redis is unavailable: only due jobs of the outbox are sent", "cause", err.Error())
	}
}

func (w *worker) maintain(ctx context.Context) {
	if time.Since(w.maintained) < w.cfg.Poll {
		return
	}
	w.maintained = time.Now()
	m, err := w.queues.Maintain(ctx, w.queue, w.shard, maintainBatch)
	if err != nil {
		w.failed(ctx, err)
		return
	}
	if m.More {
		w.maintained = time.Time{} // continue in the next iteration
	}
	w.tally.maintained(w.queue, m)
}

// claim claims due jobs and delivers them in a goroutine. It returns the time to wait before the
// next claim, or 0 if more jobs may be due now.
func (w *worker) claim(ctx context.Context) (time.Duration, error) {
	if err := w.inFlight.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	claims, err := w.queues.Claim(ctx, w.queue, w.shard, w.cfg.ClaimSize, w.cfg.Lease)
	if err != nil || len(claims.Jobs) == 0 {
		w.inFlight.Release(1)
		return untilNext(claims), err
	}

	claimed := time.Now()
	w.deliveries.Go(func() {
		defer w.inFlight.Release(1)
		w.deliver(claims, claimed)
	})
	if len(claims.Jobs) == w.cfg.ClaimSize {
		return 0, nil
	}
	return max(coalesce, untilNext(claims)), nil
}

// untilNext returns the time until the next job is due, by Redis' clock, or one hour if no job is
// scheduled.
func untilNext(c delayqueue.Claims) time.Duration {
	if c.NextDue.IsZero() {
		return time.Hour // the caller waits at most for Poll
	}
	return max(0, c.NextDue.Sub(c.Now))
}

// deliver sends claimed jobs and records the outcome of each. It continues after the run has
// stopped claiming.
func (w *worker) deliver(claims delayqueue.Claims, claimed time.Time) {
	if allowed, err := w.jobs.MaySend(w.run.work, w.queue, w.shard, claims.Now); !allowed {
		w.putBack(claims.Jobs, claimed, err)
		return
	}
	results := w.sender.Send(w.run.work, w.queue, w.url, claims.Jobs)
	sent := claims.Now.Add(time.Since(claimed)) // by Redis' clock
	var accepted []delayqueue.Claimed
	var refused []delayqueue.Refused
	for i, result := range results {
		job := claims.Jobs[i]
		if result.Outcome == sqssender.Accepted {
			accepted = append(accepted, job)
			w.tally.lateness(w.queue, sent.Sub(job.RunAt))
			continue
		}
		refused = append(refused, delayqueue.Refused{
			Job: job, Error: result.Reason, Delay: refusedDelay(job.Claim),
			Poison: result.Outcome == sqssender.Poison,
		})
	}
	w.tally.delivered(w.queue, len(accepted), refused)

	leaseEnd := claimed.Add(w.cfg.Lease)
	if len(accepted) > 0 {
		w.record(leaseEnd, func(ctx context.Context) error {
			_, err := w.queues.Accept(ctx, w.queue, w.shard, accepted)
			return err
		})
		w.jobs.RemoveSent(w.run.work, w.queue, accepted)
	}
	if len(refused) > 0 {
		w.record(leaseEnd, func(ctx context.Context) error {
			_, err := w.queues.Requeue(ctx, w.queue, w.shard, refused)
			return err
		})
	}
}

// putBack requeues the jobs of a paused queue. If the pause of the queue could not be read, cause
// is the error.
func (w *worker) putBack(jobs []delayqueue.Claimed, claimed time.Time, cause error) {
	if cause != nil {
		w.log.Error("jobs were not sent: the pause of their queue cannot be read", "queue", w.queue,
			"cause", cause.Error())
	}
	refused := make([]delayqueue.Refused, len(jobs))
	for i, job := range jobs {
		refused[i] = delayqueue.Refused{Job: job, Delay: w.cfg.Poll}
	}
	w.record(claimed.Add(w.cfg.Lease), func(ctx context.Context) error {
		_, err := w.queues.Requeue(ctx, w.queue, w.shard, refused)
		return err
	})
}

// record retries a write to Redis until it succeeds or the jobs' lease has ended. After the lease,
// another claim may return the jobs.
func (w *worker) record(leaseEnd time.Time, write func(context.Context) error) {
	for pause := recordRetry; ; pause = min(2*pause, time.Second) {
		err := write(w.run.work)
		if err == nil {
			return
		}
		if time.Now().Add(pause).After(leaseEnd) || !sleep(w.run.work, pause) {
			w.log.Error("the outcome of claimed jobs was not recorded: they can be claimed again after their lease",
				"queue", w.queue, "cause", err.Error())
			return
		}
	}
}

// refusedDelay returns a backoff that doubles with each claim of a job. Jitter shortens it by up to
// three quarters.
func refusedDelay(claims int64) time.Duration {
	longest := min(refusedMax, refusedFirst<<min(claims-1, 10))
	return longest/4 + rand.N(longest*3/4)
}
