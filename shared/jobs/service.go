// Package jobs coordinates the two stores of delayed jobs: the queues in Redis and the outbox in
// DynamoDB.
//
// The queues in Redis schedule the jobs. The outbox accepts jobs while Redis is unavailable, and
// keeps a copy of each durable job until the job is sent. A job moves in one direction only, from
// the outbox to Redis. A process must claim an outbox item before it moves, sends, cancels or
// changes its job. Decision record 0070 explains the order of reads and writes in each operation.
//
// Every error that a caller may see is a [fault.Error]. The error job_not_found means that neither
// store has the job: it is returned only after both stores were read. The error job_conflict
// contains the job's state. The error store_unavailable means that a store that the answer depends
// on is unavailable.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// claimLease is the duration of the claim that a cancel or a change takes on an outbox item.
	claimLease = 10 * time.Second
	// maxRaces is the maximum number of tries of an operation. A try fails if another process takes
	// over the claim of the item.
	maxRaces = 4
)

// Service owns both stores of delayed jobs. It is safe for concurrent use.
type Service struct {
	queues *delayqueue.Queues
	outbox *outbox.Outbox
	log    *slog.Logger

	fanOut int           // maximum number of concurrent calls to DynamoDB in one operation
	hold   time.Duration // time after its enqueue in which dispatchers must not claim a durable job
}

// New returns a Service. If box is nil, every operation uses Redis alone.
func New(queues *delayqueue.Queues, box *outbox.Outbox, log *slog.Logger) *Service {
	return &Service{queues: queues, outbox: box, log: log, fanOut: 16, hold: 2 * time.Second}
}

// Queues returns the queues in Redis.
func (s *Service) Queues() *delayqueue.Queues { return s.queues }

// find reads a job's item in the outbox. It returns nil if there is none.
func (s *Service) find(ctx context.Context, queue, id string) (*outbox.Item, error) {
	if s.outbox == nil {
		return nil, nil
	}
	return s.outbox.Find(ctx, queue, id)
}

// release ends a claim, even if ctx is canceled. If release fails, the claim ends with its lease.
func (s *Service) release(ctx context.Context, item *outbox.Item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.outbox.Release(ctx, item, 0)
}

func isNotFound(err error) bool { return fault.CodeOf(err) == fault.JobNotFound }

// neverSent reports whether err is a job_conflict for a job with attempt 0 in Redis.
func neverSent(err error) bool {
	conflict, ok := errors.AsType[*fault.Error](err)
	return ok && conflict.Code == fault.JobConflict && conflict.Extra["attempt"] == 0
}

// conflict returns the job_conflict error for a job of the outbox that is not in the state that a
// call needs.
func conflict(item *outbox.Item) error {
	state, attempt := item.JobState()
	return fault.New(fault.JobConflict, "the job is %s, attempt %d; this call needs a different state", state, attempt).
		With("state", state).With("attempt", attempt)
}

func tooManyRaces() error {
	return fault.Unavailable("dynamodb", errors.New("other processes keep claiming the outbox item"))
}
