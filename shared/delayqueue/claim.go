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

// Claimed is one attempt of a job that a dispatcher holds under a lease.
type Claimed struct {
	ID    string
	Shard int
	// Claim is the number of this claim among all claims of the job. Accept and Requeue apply only
	// to the job's newest claim.
	Claim   int64
	Attempt int
	// Redrives is the number of times that the job was redriven. Each redrive restarts Attempt at
	// 1.
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
	// Now is the time of the claim by Redis' clock.
	Now time.Time
	// NextDue is the due time of the shard's next job, or the end of the pause if the queue is
	// paused. It is the zero time if no job is scheduled, or if only Resume ends the pause.
	NextDue time.Time
	// Paused reports whether the queue is paused. If so, Jobs is empty.
	Paused bool
}

// Claim claims up to limit due jobs of a shard, and starts an attempt of each. The limit is 1 to
// MaxBatch. The caller sends the jobs and calls Accept or Requeue before the lease ends; otherwise
// Maintain reschedules them. A due job whose ExpiresAt has passed becomes expired and is not
// returned. Errors: [ErrInvalid], [ErrUnavailable].
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
		return Claims{}, fmt.Errorf("unexpected reply from the claim script: %v", rows)
	}

	claims := Claims{Now: fromUnixMS(number(rows[0])), Paused: number(rows[2]) == 1}
	if next := number(rows[1]); next >= 0 {
		claims.NextDue = fromUnixMS(next)
	}
	for row := rows[3:]; len(row) >= 2; row = row[2:] {
		// Skip an unreadable record, so that it does not block the other jobs. The job's leases
		// then lapse, and after MaxLapses lapses the job becomes dead.
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

// Accept records that SQS accepted jobs of one shard. It returns the jobs whose claim was lost
// after their lease lapsed, and does not change these jobs. Errors: [ErrInvalid], [ErrUnavailable].
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
	// Delay is the time until the job is due again.
	Delay time.Duration
	// Poison marks a job that SQS can never accept. Requeue makes it dead.
	Poison bool
}

// Requeue ends the claims of jobs that SQS did not accept. All jobs must be in the given shard.
// Requeue makes poison jobs dead. It schedules the other jobs again, and does not count the
// attempt. It returns the jobs whose claim was lost after their lease lapsed, and does not change
// these jobs. Errors: [ErrInvalid], [ErrUnavailable].
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

// lostClaims returns the jobs whose row in a script's reply is 0: their claim is no longer the
// newest.
func lostClaims(jobs []Claimed, rows []any) (lost []Claimed, err error) {
	if len(rows) != len(jobs) {
		return nil, fmt.Errorf("unexpected reply from a queue script: %v", rows)
	}
	for i, row := range rows {
		if number(row) == 0 {
			lost = append(lost, jobs[i])
		}
	}
	return lost, nil
}
