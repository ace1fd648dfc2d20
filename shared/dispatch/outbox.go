package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
)

const (
	// awayPoll is how often a Redis that is away is asked for.
	awayPoll = 200 * time.Millisecond
	// outboxBatch is how many items one step takes from each part of the outbox.
	outboxBatch = 100
	// unsendableLease keeps what is not to be sent, expired or of a queue that is not listed, out
	// of the way of what is.
	unsendableLease = 10 * time.Minute
	// returners is how many items are returned to Redis at once.
	returners = 16
	// durableAhead is how long before its time a durable job is made sure to be in Redis.
	durableAhead = 2 * time.Minute
)

// watchOutbox opens the gate when Redis is there and the outbox has been returned to it; while
// Redis is away it sends due jobs from the outbox.
func (r *run) watchOutbox(ctx context.Context) {
	var lastSend time.Time
	for ctx.Err() == nil {
		if r.store.Ping(ctx) == nil {
			r.returnAll(ctx)
			if ctx.Err() == nil && r.store.Register(ctx) == nil && r.gate.set(true) {
				r.log.Info("redis is there: claiming")
			}
			r.restWhileOpen(ctx)
			continue
		}
		r.gate.set(false)
		if time.Since(lastSend) >= r.cfg.Poll {
			lastSend = time.Now()
			r.sendDue(ctx)
		}
		sleep(ctx, awayPoll)
	}
}

// restWhileOpen waits for the next look at the outbox, or for the gate to be shut by a worker that
// found Redis away.
func (r *run) restWhileOpen(ctx context.Context) {
	for end := time.Now().Add(r.cfg.OutboxPoll); time.Now().Before(end) && r.gate.isOpen(); {
		if !sleep(ctx, awayPoll) {
			return
		}
	}
}

// sendDue sends the outbox's due jobs to SQS, in steps until none is left.
func (r *run) sendDue(ctx context.Context) {
	for r.outbox != nil && ctx.Err() == nil {
		items, err := r.outbox.Due(ctx, time.Now(), outboxBatch)
		if err != nil {
			r.log.Error("redis and the outbox are away: nothing can be sent", "cause", err.Error())
			return
		}
		if r.sendClaimed(ctx, items) == 0 {
			return
		}
	}
}

// sendClaimed sends items, each under a claim, leaves a mark of what was sent for Redis, and
// returns how many it claimed.
func (r *run) sendClaimed(ctx context.Context, items []outbox.Item) int {
	claims := 0
	byQueue := make(map[string][]*outbox.Item)
	for i := range items {
		expired := !items[i].Job.ExpiresAt.IsZero() && !items[i].Job.ExpiresAt.After(time.Now())
		unsendable, lease := r.cfg.Queues[items[i].Queue] == "" || expired, r.cfg.Lease
		if unsendable {
			lease = unsendableLease
		}
		if ok, err := r.outbox.Claim(ctx, &items[i], lease); !ok || err != nil {
			continue
		}
		if claims++; !unsendable {
			byQueue[items[i].Queue] = append(byQueue[items[i].Queue], &items[i])
		}
	}
	for queue, claimed := range byQueue {
		r.sendItems(queue, claimed)
	}
	return claims
}

func (r *run) sendItems(queue string, items []*outbox.Item) {
	jobs := make([]delayqueue.Claimed, len(items))
	for i, item := range items {
		j := item.Job
		jobs[i] = delayqueue.Claimed{ID: j.ID, Attempt: 1, RunAt: j.RunAt, Payload: j.Payload, Group: j.Group,
			Headers: j.Headers, Trace: j.Trace}
	}
	results := r.sender.Send(r.work, queue, r.cfg.Queues[queue], jobs)
	now := time.Now()
	for i, res := range results {
		var err error
		if res.Outcome == sqssender.Accepted {
			_, err = r.outbox.MarkSent(r.work, items[i])
			r.tally.lateness(queue, now.Sub(items[i].Job.RunAt))
			r.tally.delivered(queue, 1, nil)
		} else {
			_, err = r.outbox.Return(r.work, items[i], refusedMost)
		}
		if err != nil {
			r.log.Error("the outbox did not note what became of a job", "queue", queue, "cause", err.Error())
		}
	}
}

// returnAll moves the outbox to Redis, in steps, until nothing is left that can be moved now. When
// the outbox itself is away it does not hold Redis' jobs up.
func (r *run) returnAll(ctx context.Context) {
	if r.outbox == nil {
		return
	}
	for ctx.Err() == nil {
		items, err := r.outbox.ToReturn(ctx, time.Now().Add(durableAhead), outboxBatch)
		if err != nil {
			r.log.Error("the outbox is away: what is in it waits", "cause", err.Error())
			return
		}
		moved := r.returnItems(ctx, items)
		if moved == 0 {
			return
		}
		r.log.Info("jobs were returned from the outbox to redis", "jobs", moved)
	}
}

// returnItems returns items, several at once, and counts those that need no further look now.
func (r *run) returnItems(ctx context.Context, items []outbox.Item) int64 {
	var moved atomic.Int64
	var wait sync.WaitGroup
	slots := make(chan struct{}, returners)
	for i := range items {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if r.returnItem(ctx, &items[i]) {
				moved.Add(1)
			}
		})
	}
	wait.Wait()
	return moved.Load()
}

// returnItem reports whether the item is in Redis' care: it left the outbox, or stays as a durable
// one.
func (r *run) returnItem(ctx context.Context, item *outbox.Item) bool {
	if item.Sent {
		return r.store.RecordSent(ctx, item.Queue, item.Job, item.SentAt) == nil && r.outbox.Remove(ctx, item) == nil
	}
	if !item.Free(time.Now()) {
		return false // another dispatcher is sending it
	}
	if ok, err := r.outbox.Claim(ctx, item, r.cfg.Lease); !ok || err != nil {
		return false
	}
	job := item.Job
	job.Durable = item.Durable
	results, errs := r.store.Enqueue(ctx, item.Queue, []delayqueue.Job{job})
	if errs[0] != nil {
		_, _ = r.outbox.Return(ctx, item, 0)
		return false
	}
	if item.Durable && results[0].State == delayqueue.Scheduled {
		ok, err := r.outbox.Return(ctx, item, durableAhead/2) // it stays until it is sent; no need to look again soon
		return ok && err == nil
	}
	return r.outbox.Remove(ctx, item) == nil
}
