// Package jobs is the rule of the two stores that hold delayed jobs: the queues in Redis and the
// outbox in DynamoDB.
//
// Redis runs the jobs. The outbox accepts them while Redis is unavailable and keeps a copy of each
// durable job until it is sent. A job moves in one direction only, from the outbox to Redis, and
// whoever moves, sends, cancels or changes a job of the outbox holds its claim. The decision record
// 0070 gives the order of reads and writes in each operation, and the reasons.
//
// Every error that a caller may see is a [fault.Error]: job_not_found only after both stores were
// read, job_conflict with the job's state, store_unavailable when a store that the answer depends
// on cannot be reached.
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
	// claimLease is how long a cancel or a change may hold the claim of an outbox item.
	claimLease = 10 * time.Second
	// maxRaces is how often an operation starts again because another process took the item's
	// claim.
	maxRaces = 4
)

// Service owns both stores of delayed jobs. It is safe for concurrent use.
type Service struct {
	queues *delayqueue.Queues
	outbox *outbox.Outbox
	log    *slog.Logger

	fanOut int           // the maximum number of concurrent calls of DynamoDB in one operation
	hold   time.Duration // how long dispatchers leave a new durable job to the call that enqueues it
}

// New returns a Service. A nil outbox means that there is none: then every operation is that of
// Redis alone.
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

// release ends a claim also when the caller has gone. If it fails, the lease ends the claim.
func (s *Service) release(ctx context.Context, item *outbox.Item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.outbox.Release(ctx, item, 0)
}

func isNotFound(err error) bool { return fault.CodeOf(err) == fault.JobNotFound }

// neverSent reports whether err is the conflict of a job of which Redis has no attempt.
func neverSent(err error) bool {
	conflict, ok := errors.AsType[*fault.Error](err)
	return ok && conflict.Code == fault.JobConflict && conflict.Extra["attempt"] == 0
}

// conflict reports that a job of the outbox is not in the state that a call needs.
func conflict(item *outbox.Item) error {
	state, attempt := item.JobState()
	return fault.New(fault.JobConflict, "the job is %s, attempt %d: this call needs another state", state, attempt).
		With("state", state).With("attempt", attempt)
}

func tooManyRaces() error {
	return fault.Unavailable("dynamodb", errors.New("other processes keep claiming the outbox item"))
}
