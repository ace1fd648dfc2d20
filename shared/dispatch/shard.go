package dispatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/fault"
)

const (
	maintainBatch = 500
	// coalesce is how long a shard that just had due jobs waits before it claims again: with many
	// jobs a second, a few to a claim.
	coalesce = time.Millisecond
	// acceptRetry is the first pause before an Accept that failed is tried again.
	acceptRetry = 50 * time.Millisecond
	// Backoff of jobs that SQS did not take, by the number of claims.
	refusedFirst = 250 * time.Millisecond
	refusedMost  = time.Minute
)

// serve runs a worker for each shard of each queue, also for those of earlier shard counts.
func (r *run) serve(ctx context.Context) {
	if !r.gate.pass(ctx) {
		return
	}
	bells := make(map[delayqueue.Shard]chan struct{})
	var workers sync.WaitGroup
	for queue, url := range r.cfg.Queues {
		for shard := range r.store.AllShards() {
			bell := make(chan struct{}, 1)
			bells[delayqueue.Shard{Queue: queue, Index: shard}] = bell
			w := &worker{run: r, queue: queue, url: url, shard: shard, bell: bell,
				slots: make(chan struct{}, r.cfg.InFlight)}
			workers.Go(func() { w.work(ctx) })
		}
	}
	for s := range r.store.Wakeups(ctx) {
		select {
		case bells[s] <- struct{}{}:
		default: // unknown, or rung already
		}
	}
	workers.Wait()
}

// worker serves one shard.
type worker struct {
	*run
	queue, url string
	shard      int
	bell       <-chan struct{}
	slots      chan struct{}
	maintained time.Time
}

func (w *worker) work(ctx context.Context) {
	for w.gate.pass(ctx) {
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

// rest waits for a wake-up or for pause, whichever is sooner.
func (w *worker) rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(min(pause, w.cfg.Poll))
	defer timer.Stop()
	select {
	case <-w.bell:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// failed shuts the gate when Redis is away; other errors are logged. Either way the worker goes on.
func (w *worker) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if fault.CodeOf(err) == fault.StoreUnavailable {
		if w.gate.set(false) {
			w.log.Error("redis is away: due jobs of the outbox are still sent", "cause", err.Error())
		}
		return
	}
	w.log.Error("a shard could not be served", "queue", w.queue, "shard", w.shard, "cause", err.Error())
}

func (w *worker) maintain(ctx context.Context) {
	if time.Since(w.maintained) < w.cfg.Poll {
		return
	}
	w.maintained = time.Now()
	m, err := w.store.Maintain(ctx, w.queue, w.shard, maintainBatch)
	if err != nil {
		w.failed(ctx, err)
		return
	}
	if m.More {
		w.maintained = time.Time{} // again at the next turn, in steps
	}
	w.tally.maintained(w.queue, m)
}

// claim takes due jobs and hands them to a delivery of its own, and returns how long there is
// nothing to do.
func (w *worker) claim(ctx context.Context) (time.Duration, error) {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, nil
	}
	release := func() { <-w.slots }
	claims, err := w.store.Claim(ctx, w.queue, w.shard, w.cfg.ClaimSize, w.cfg.Lease)
	if err != nil || len(claims.Jobs) == 0 {
		release()
		return untilNext(claims), err
	}
	claimed := time.Now()
	w.deliveries.Go(func() {
		defer release()
		w.deliver(claims.Jobs, claims.Now, claimed)
	})
	if len(claims.Jobs) == w.cfg.ClaimSize {
		return 0, nil
	}
	return max(coalesce, untilNext(claims)), nil
}

// untilNext is how long until the next job is due, by Redis' clock.
func untilNext(c delayqueue.Claims) time.Duration {
	if c.NextDue.IsZero() {
		return time.Hour // bounded by the poll
	}
	return max(0, c.NextDue.Sub(c.Now))
}

// deliver sends claimed jobs, and answers for each of them. It outlives the end of claiming.
func (w *worker) deliver(jobs []delayqueue.Claimed, now, claimed time.Time) {
	results := w.sender.Send(w.run.work, w.queue, w.url, jobs)
	sentAt := now.Add(time.Since(claimed)) // by Redis' clock
	var accepted []delayqueue.Claimed
	var refused []delayqueue.Refused
	for i, res := range results {
		if res.Outcome == sqssender.Accepted {
			accepted = append(accepted, jobs[i])
			w.tally.lateness(w.queue, sentAt.Sub(jobs[i].RunAt))
			continue
		}
		refused = append(refused, delayqueue.Refused{
			Job: jobs[i], Error: res.Reason, Delay: refusedDelay(jobs[i].Claim),
			Poison: res.Outcome == sqssender.Poison,
		})
	}
	w.tally.delivered(w.queue, len(accepted), refused)
	until := claimed.Add(w.cfg.Lease)
	if len(accepted) > 0 {
		w.insist(until, func(ctx context.Context) error {
			_, err := w.store.Accept(ctx, w.queue, w.shard, accepted)
			return err
		})
		w.forgetDurable(accepted)
	}
	if len(refused) > 0 {
		w.insist(until, func(ctx context.Context) error {
			_, err := w.store.Requeue(ctx, w.queue, w.shard, refused)
			return err
		})
	}
}

// insist repeats an answer until it is noted or the lease has ended: after that the jobs belong to
// whoever takes them back.
func (w *worker) insist(until time.Time, answer func(context.Context) error) {
	pause := acceptRetry
	for {
		err := answer(w.run.work)
		if err == nil || time.Now().Add(pause).After(until) || !sleep(w.run.work, pause) {
			if err != nil {
				w.log.Error("an answer for claimed jobs was not noted: they are taken back when their lease ends",
					"queue", w.queue, "cause", err.Error())
			}
			return
		}
		pause = min(2*pause, time.Second)
	}
}

// refusedDelay is an exponential backoff with full jitter, but at least a quarter.
func refusedDelay(claims int64) time.Duration {
	most := min(refusedMost, refusedFirst<<min(claims-1, 10))
	return most/4 + rand.N(most*3/4)
}

// forgetDurable takes jobs that were sent out of the outbox. What fails is found again when the
// outbox is read.
func (w *worker) forgetDurable(jobs []delayqueue.Claimed) {
	if w.outbox == nil {
		return
	}
	for _, j := range jobs {
		if j.Durable {
			if err := w.outbox.RemoveID(w.run.work, w.queue, j.ID); err != nil {
				w.log.Warn("a durable job was not taken out of the outbox yet", "queue", w.queue, "cause", err.Error())
			}
		}
	}
}
