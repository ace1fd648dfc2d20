package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// dispatch runs one turn of a dispatcher. It moves the outbox to Redis and sends due jobs from
// Redis. If it cannot reach Redis, it sends due jobs from the outbox.
func (w *world) dispatch(p *process) {
	ctx := context.Background()
	t := w.begin(p, p.queues.Ping(ctx) != nil)
	defer t.end()
	if t.fromOutbox {
		_, _ = p.SendDue(ctx, ctx, Sending{
			Queues: map[string]string{queue: "url"}, Lease: time.Minute,
			Send: func(_ context.Context, _ string, jobs []delayqueue.Claimed) []bool { return t.send(jobs) },
		})
		return
	}

	failures := 0
	for {
		moved, err := p.MoveToRedis(ctx, time.Minute)
		if err != nil {
			failures++
		}
		if failures == maxMoveFailures {
			for _, j := range w.jobs { // Redis may lack the record of a job that the outbox sent
				j.mayRepeat = true
			}
		}
		if failures == maxMoveFailures || err == nil && moved == 0 {
			break
		}
	}
	claims, err := p.queues.Claim(ctx, queue, 0, 100, time.Minute)
	if err != nil || len(claims.Jobs) == 0 {
		return
	}
	if allowed, _ := p.MaySend(ctx, queue, 0, claims.Now); !allowed {
		requeue(ctx, p, claims.Jobs)
		return
	}
	t.send(claims.Jobs)
	_, _ = p.queues.Accept(ctx, queue, 0, claims.Jobs)
	p.RemoveSent(ctx, queue, claims.Jobs)
}

func requeue(ctx context.Context, p *process, jobs []delayqueue.Claimed) {
	refused := make([]delayqueue.Refused, len(jobs))
	for i, job := range jobs {
		refused[i] = delayqueue.Refused{Job: job}
	}
	_, _ = p.queues.Requeue(ctx, queue, 0, refused)
}

// turn is the state of one turn of a dispatcher.
type turn struct {
	*world

	process    *process
	fromOutbox bool // the process cannot reach Redis
	paused     bool // whether the queue was paused when the turn began
	pause      int  // the number of pauses when the turn began
	injected   int  // number of failures before the turn sent jobs
	sent       []*answers
}

// begin begins a turn. If it overlaps another turn and only one of the two can reach Redis, a job
// in both stores may be sent twice.
func (w *world) begin(p *process, fromOutbox bool) *turn {
	for _, other := range w.turns {
		if other.fromOutbox != fromOutbox {
			for _, j := range w.jobs {
				j.mayRepeat = true
			}
		}
	}
	t := &turn{world: w, process: p, fromOutbox: fromOutbox, paused: w.paused, pause: w.pauses}
	w.turns = append(w.turns, t)
	return t
}

// send is a fake SQS that accepts every job. It checks each job against the answers that callers
// got.
func (t *turn) send(jobs []delayqueue.Claimed) []bool {
	t.injected = t.process.injected
	accepted := make([]bool, len(jobs))
	for i, claimed := range jobs {
		accepted[i] = true
		id, j := claimed.ID, t.jobs[claimed.ID]
		if j == nil {
			continue // a job of an earlier test on the same stores
		}
		paused := t.paused && t.world.paused && t.pause == t.pauses
		require.False(t.t, paused, "job %s of a paused queue is sent", id)
		require.False(t.t, j.canceled, "job %s is sent after its cancellation: %+v", id, *j)
		require.False(t.t, j.missing, "job %s is sent after it was not found: %+v", id, *j)
		require.False(t.t, j.later, "job %s is sent before its new time: %+v", id, *j)
		require.Contains(t.t, j.payloads, string(claimed.Payload), "job %s is sent with an old payload", id)
		require.True(t.t, j.sent == 0 || j.mayRepeat, "job %s is sent twice: %+v", id, *j)
		j.sent++
		t.sent = append(t.sent, j)
	}
	return accepted
}

// end ends a turn. If a store failed after the turn sent jobs, their outcome may be lost, and they
// may be sent again.
func (t *turn) end() {
	t.turns = slices.DeleteFunc(t.turns, func(other *turn) bool { return other == t })
	if t.process.injected > t.injected {
		for _, j := range t.sent {
			j.mayRepeat = true
		}
	}
}
