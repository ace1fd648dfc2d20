package dispatch

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/jobs"
)

const (
	// redisPoll is the ping interval while Redis is unavailable.
	redisPoll = 200 * time.Millisecond
	// maxMoveFailures is the number of consecutive failures to move the outbox after which the gate
	// opens anyway.
	maxMoveFailures = 3
)

// watchStores opens the gate when Redis is available and the outbox has been moved to it. While
// Redis is unavailable, watchStores sends the due jobs of the outbox.
//
// An outbox that cannot be moved keeps the gate shut for at most maxMoveFailures attempts, so that
// a longer outage of DynamoDB does not block the jobs in Redis.
func (r *run) watchStores(ctx context.Context) {
	var lastSend time.Time
	var pauses pauseWatch
	moveFailures := 0
	for ctx.Err() == nil {
		if r.queues.Ping(ctx) != nil {
			r.gate.set(false)
			pauses.forget()
			if time.Since(lastSend) >= r.cfg.Poll {
				lastSend = time.Now()
				r.sendDue(ctx)
			}
			sleep(ctx, redisPoll)
			continue
		}

		if err := r.moveOutbox(ctx); err == nil {
			moveFailures = 0
		} else if moveFailures++; moveFailures < maxMoveFailures && !r.gate.isOpen() {
			sleep(ctx, redisPoll)
			continue
		}
		pauses.refresh(ctx, r)
		if ctx.Err() == nil && r.queues.Register(ctx) == nil && r.gate.set(true) {
			r.log.Info("redis is available: claiming")
		}
		r.restWhileOpen(ctx)
	}
}

// restWhileOpen waits for OutboxPoll, or until a worker finds Redis unavailable and shuts the gate.
func (r *run) restWhileOpen(ctx context.Context) {
	for end := time.Now().Add(r.cfg.OutboxPoll); time.Now().Before(end) && r.gate.isOpen(); {
		if !sleep(ctx, min(redisPoll, r.cfg.OutboxPoll)) {
			return
		}
	}
}

// moveOutbox moves the outbox to Redis, batch by batch.
func (r *run) moveOutbox(ctx context.Context) error {
	for ctx.Err() == nil {
		moved, err := r.jobs.MoveToRedis(ctx, r.cfg.Lease)
		if err != nil {
			r.log.Error("the outbox cannot be moved to redis: its jobs are delayed", "cause", err.Error())
			return err
		}
		if moved == 0 {
			return nil
		}
		r.log.Info("jobs were moved from the outbox to redis", "jobs", moved)
	}
	return ctx.Err()
}

// sendDue sends the due jobs of the outbox to SQS, batch by batch.
func (r *run) sendDue(ctx context.Context) {
	sending := jobs.Sending{Queues: r.cfg.Queues, Lease: r.cfg.Lease, Send: r.sendOutboxJobs}
	for ctx.Err() == nil {
		claimed, err := r.jobs.SendDue(ctx, r.work, sending)
		if err != nil {
			r.log.Error("redis and dynamodb are unavailable: no job can be sent", "cause", err.Error())
			return
		}
		if claimed == 0 {
			return
		}
	}
}

func (r *run) sendOutboxJobs(ctx context.Context, queue string, due []delayqueue.Claimed) []bool {
	accepted := make([]bool, len(due))
	now := time.Now()
	for i, result := range r.sender.Send(ctx, queue, r.cfg.Queues[queue], due) {
		if result.Outcome == sqssender.Accepted {
			accepted[i] = true
			r.tally.lateness(queue, now.Sub(due[i].RunAt))
			r.tally.delivered(queue, 1, nil)
		}
	}
	return accepted
}

// pauseWatch copies pauses from DynamoDB to Redis when they change: a call that pauses or resumes a
// queue while Redis is unavailable changes only DynamoDB.
type pauseWatch struct {
	read bool
	last map[string]delayqueue.Pause
}

// forget makes the next refresh copy the pause of every queue.
func (w *pauseWatch) forget() { *w = pauseWatch{} }

func (w *pauseWatch) refresh(ctx context.Context, r *run) {
	pauses, err := r.jobs.Pauses(ctx)
	if err != nil {
		r.log.Error("dynamodb is unavailable: the pauses of queues cannot be read", "cause", err.Error())
		return
	}
	for queue := range r.cfg.Queues {
		if w.read && pauses[queue] == w.last[queue] {
			continue
		}
		if r.jobs.ReloadPause(ctx, queue) != nil {
			return // the next refresh tries again
		}
	}
	w.read, w.last = true, pauses
}
