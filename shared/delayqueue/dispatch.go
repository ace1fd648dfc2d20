package delayqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/instant"
)

// Claims is what one Claim found.
type Claims struct {
	Jobs []Claimed
	// Now is the time by Redis' clock.
	Now time.Time
	// NextDue is the due time of the shard's next job, or the zero time if there is none.
	NextDue time.Time
	Paused  bool
}

// Claim takes up to most due jobs of a shard under a lease, and counts an attempt of each. What is
// not answered for when the lease ends is taken back by Maintain. Jobs whose expires_at has passed
// become expired.
func (q *Queues) Claim(ctx context.Context, queue string, shard, most int, lease time.Duration) (Claims, error) {
	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.claim, []string{p.due, p.leased, p.done, p.jobs, p.paused, p.dead}, most,
		lease.Milliseconds(),
		q.cfg.DedupWindow.Milliseconds(), q.cfg.MaxLapses, q.cfg.DeadRetention.Milliseconds())
	if err != nil {
		return Claims{}, err
	}
	if len(rows) < 3 {
		return Claims{}, fmt.Errorf("unexpected reply of claim: %v", rows)
	}
	c := Claims{Now: fromUnixMS(number(rows[0])), Paused: number(rows[2]) == 1}
	if next := number(rows[1]); next >= 0 {
		c.NextDue = fromUnixMS(next)
	}
	for row := rows[3:]; len(row) >= 2; row = row[2:] {
		id := text(row[0])
		h, info, e, err := q.codec.decode(id, text(row[1]))
		// one unreadable record must not hold up the others; its lease lapses, and after MaxLapses
		// of them it is dead
		if err != nil {
			continue
		}
		c.Jobs = append(c.Jobs, Claimed{
			ID: id, Shard: shard, Claim: h.claims, Attempt: h.attempt, RunAt: h.runAt(), Payload: info.Payload,
			Redrives: h.redrives, Group: e.Group, Headers: e.Headers, Trace: h.trace, Durable: h.durable,
		})
	}
	return c, nil
}

// Accept notes that SQS accepted jobs of one shard, and reports for each whether its claim still
// held.
func (q *Queues) Accept(ctx context.Context, queue string, shard int, jobs []Claimed) ([]bool, error) {
	p := placeOf(queue, shard)
	args := make([]any, 0, 3+2*len(jobs))
	args = append(args, q.cfg.DedupWindow.Milliseconds(), defaultAckTime.Milliseconds(), len(jobs))
	for _, j := range jobs {
		args = append(args, j.ID, j.Claim)
	}
	rows, err := q.rows(ctx, q.scripts.accept, []string{p.leased, p.awaiting, p.done, p.jobs}, args...)
	return flags(rows), err
}

// Refused is a claimed job that SQS did not accept.
type Refused struct {
	Job   Claimed
	Error string
	// Delay is how long to wait before it is sent again.
	Delay time.Duration
	// Poison says that it will never be accepted: it is dead at once.
	Poison bool
}

// Requeue ends the claims of jobs of one shard that SQS did not accept. A job is scheduled again and
// its attempt does not count; a poison job becomes dead.
func (q *Queues) Requeue(ctx context.Context, queue string, shard int, refused []Refused) ([]bool, error) {
	p := placeOf(queue, shard)
	args := make([]any, 0, 2+4*len(refused))
	args = append(args, q.cfg.DeadRetention.Milliseconds(), len(refused))
	for _, r := range refused {
		delay := strconv.FormatInt(instant.CeilMilliseconds(r.Delay), 10)
		if r.Poison {
			delay = "dead"
		}
		args = append(args, r.Job.ID, r.Job.Claim, delay, oneLine(r.Error))
	}
	rows, err := q.rows(ctx, q.scripts.giveBack, []string{p.due, p.leased, p.dead, p.jobs}, args...)
	return flags(rows), err
}

func flags(rows []any) []bool {
	out := make([]bool, len(rows))
	for i, r := range rows {
		out[i] = number(r) == 1
	}
	return out
}

// Maintained is what one Maintain did.
type Maintained struct {
	Reclaimed int64 // leases taken back
	Missed    int64 // acks that did not come in time
	Died      int64 // of these, after the last attempt
	Pruned    int64
	More      bool
}

// Maintain takes back lapsed leases, ends lapsed ack timeouts and prunes what is over, with at most
// a given number of each.
func (q *Queues) Maintain(ctx context.Context, queue string, shard, most int) (Maintained, error) {
	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.maintain, []string{p.due, p.leased, p.awaiting, p.dead, p.done, p.jobs}, most,
		q.cfg.DeadRetention.Milliseconds(), jitter())
	if err != nil {
		return Maintained{}, err
	}
	if len(rows) != 5 {
		return Maintained{}, fmt.Errorf("unexpected reply of maintain: %v", rows)
	}
	return Maintained{
		Reclaimed: number(rows[0]), Missed: number(rows[1]), Died: number(rows[2]), Pruned: number(rows[3]),
		More: number(rows[4]) == 1,
	}, nil
}
