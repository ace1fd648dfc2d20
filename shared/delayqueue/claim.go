package delayqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// Claimed is one attempt of a job, which a dispatcher has claimed and holds under a lease.
type Claimed struct {
	ID    string
	Shard int
	// Claim numbers the claims of a job. Accept and Requeue apply to the newest claim only.
	Claim   int64
	Attempt int
	// Redrives is how many times the job was redriven; each time its attempts start at 1 again.
	Redrives int
	RunAt    time.Time
	Payload  json.RawMessage
	Group    string
	Headers  map[string]string
	Trace    string
	Durable  bool
}

// Claims is the result of Claim.
type Claims struct {
	Jobs []Claimed
	// Now is the time by Redis' clock.
	Now time.Time
	// NextDue is the due time of the shard's next job, or the zero time if there is none.
	NextDue time.Time
	// Paused reports that the queue is paused, so that no job was claimed.
	Paused bool
}

// Claim claims up to limit due jobs of a shard, 1 to MaxBatch, and starts an attempt of each. The
// caller sends them and then calls Accept or Requeue before the lease ends; otherwise Maintain
// reschedules them. Jobs whose ExpiresAt has passed become expired instead. Errors: [ErrInvalid],
// [ErrUnavailable].
func (q *Queues) Claim(ctx context.Context, queue string, shard, limit int, lease time.Duration) (Claims, error) {
	if err := checkClaim(queue, shard, limit, lease); err != nil {
		return Claims{}, err
	}
	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.claim, []string{p.due, p.leased, p.done, p.jobs, p.paused, p.dead},
		limit, instant.CeilMilliseconds(lease), q.cfg.DedupWindow.Milliseconds(), q.cfg.MaxLapses,
		q.cfg.DeadRetention.Milliseconds())
	if err != nil {
		return Claims{}, err
	}
	if len(rows) < 3 {
		return Claims{}, fmt.Errorf("unexpected reply of claim: %v", rows)
	}

	claims := Claims{Now: fromUnixMS(number(rows[0])), Paused: number(rows[2]) == 1}
	if next := number(rows[1]); next >= 0 {
		claims.NextDue = fromUnixMS(next)
	}
	for row := rows[3:]; len(row) >= 2; row = row[2:] {
		// An unreadable record must not hold up the others. Its lease lapses again and again, and
		// after MaxLapses times the job is dead.
		if job, err := q.parseClaimed(shard, text(row[0]), text(row[1])); err == nil {
			claims.Jobs = append(claims.Jobs, job)
		}
	}
	return claims, nil
}

func checkClaim(queue string, shard, limit int, lease time.Duration) error {
	var f fault.Fields
	checkShard(&f, queue, shard)
	checkLimit(&f, limit)
	if lease <= 0 {
		f.Add("lease_ms", "must be at least 1")
	}
	return f.Err()
}

func (q *Queues) parseClaimed(shard int, id, record string) (Claimed, error) {
	h, info, err := q.codec.decode(id, record)
	return Claimed{
		ID:       id,
		Shard:    shard,
		Claim:    h.claims,
		Attempt:  h.attempt,
		Redrives: h.redrives,
		RunAt:    info.RunAt,
		Payload:  info.Payload,
		Group:    info.Group,
		Headers:  info.Headers,
		Trace:    h.trace,
		Durable:  h.durable,
	}, err
}

// Accept records that SQS accepted jobs of one shard. It returns the jobs whose claim was lost:
// their lease lapsed, and Accept changed nothing. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Accept(ctx context.Context, queue string, shard int, jobs []Claimed) (lost []Claimed, err error) {
	var f fault.Fields
	if checkShard(&f, queue, shard); len(f) > 0 {
		return nil, f.Err()
	}
	args := make([]any, 0, 3+2*len(jobs))
	args = append(args, q.cfg.DedupWindow.Milliseconds(), defaultAckTime.Milliseconds(), len(jobs))
	for _, j := range jobs {
		args = append(args, j.ID, j.Claim)
	}

	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.accept, []string{p.leased, p.awaiting, p.done, p.jobs}, args...)
	if err != nil {
		return nil, err
	}
	return lostClaims(jobs, rows)
}

// Refused is a claimed job that SQS did not accept.
type Refused struct {
	Job   Claimed
	Error string
	// Delay is the time until the job is sent again.
	Delay time.Duration
	// Poison reports that SQS can never accept the job, which becomes dead.
	Poison bool
}

// Requeue ends the claims of jobs of one shard that SQS did not accept. A job is scheduled again
// and its attempt does not count; a poison job becomes dead. It returns the jobs whose claim was
// lost: their lease lapsed, and Requeue changed nothing. Errors: [ErrInvalid], [ErrUnavailable].
func (q *Queues) Requeue(ctx context.Context, queue string, shard int,
	refused []Refused) (lost []Claimed, err error) {
	var f fault.Fields
	if checkShard(&f, queue, shard); len(f) > 0 {
		return nil, f.Err()
	}
	args := make([]any, 0, 2+4*len(refused))
	args = append(args, q.cfg.DeadRetention.Milliseconds(), len(refused))
	for _, r := range refused {
		delay := strconv.FormatInt(instant.CeilMilliseconds(r.Delay), 10)
		if r.Poison {
			delay = "dead"
		}
		args = append(args, r.Job.ID, r.Job.Claim, delay, oneLine(r.Error))
	}

	p := placeOf(queue, shard)
	rows, err := q.rows(ctx, q.scripts.requeue, []string{p.due, p.leased, p.dead, p.jobs}, args...)
	if err != nil {
		return nil, err
	}
	jobs := make([]Claimed, len(refused))
	for i := range refused {
		jobs[i] = refused[i].Job
	}
	return lostClaims(jobs, rows)
}

// lostClaims returns the jobs for which a script replied 0: their claim is not the newest any more.
func lostClaims(jobs []Claimed, rows []any) (lost []Claimed, err error) {
	if len(rows) != len(jobs) {
		return nil, fmt.Errorf("unexpected reply of a queue's script: %v", rows)
	}
	for i, row := range rows {
		if number(row) == 0 {
			lost = append(lost, jobs[i])
		}
	}
	return lost, nil
}
