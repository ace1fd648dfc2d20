package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
)

const (
	// moveBatch is the maximum number of items of each kind that one MoveToRedis moves.
	moveBatch = 100
	// durableAhead is the lead time: MoveToRedis ensures that a durable job is in Redis this long
	// before it is due.
	durableAhead = 2 * time.Minute
)

// MoveToRedis moves a batch of outbox items to Redis and returns the number of moved items; 0 means
// that no item is left to move now. It records sent jobs in Redis and enqueues all other jobs
// there. The item of a durable job stays in the outbox until the job is sent. Errors:
// store_unavailable, if the outbox cannot be read or a sent job was not recorded. Until a sent job
// is recorded, Redis may hand it out again.
func (s *Service) MoveToRedis(ctx context.Context, lease time.Duration) (int, error) {
	if s.outbox == nil {
		return 0, nil
	}
	items, err := s.outbox.Movable(ctx, time.Now().Add(durableAhead), moveBatch)
	if err != nil {
		return 0, err
	}
	var moved atomic.Int64
	var unrecorded atomic.Pointer[error]
	forEach(s.fanOut, items, func(item *outbox.Item) {
		err := s.moveItem(ctx, item, lease)
		if err == nil {
			moved.Add(1)
		} else if item.State == outbox.Sent && !errors.Is(err, outbox.ErrClaimLost) {
			unrecorded.Store(&err)
		}
	})
	if err := unrecorded.Load(); err != nil {
		return int(moved.Load()), *err
	}
	return int(moved.Load()), nil
}

func (s *Service) moveItem(ctx context.Context, item *outbox.Item, lease time.Duration) error {
	if item.State == outbox.Sent {
		return s.recordSent(ctx, item)
	}
	if err := s.outbox.ClaimToMove(ctx, item, lease); err != nil {
		return err
	}
	inRedis, err := s.enqueueItem(ctx, item)
	if err != nil {
		s.release(ctx, item)
		return err
	}
	if item.Durable && awaitsFirstSend(inRedis) {
		return s.outbox.Release(ctx, item, durableAhead/2)
	}
	return s.outbox.Remove(ctx, item)
}

// enqueueItem enqueues the job of a claimed item in Redis, unless Redis already has a job with its
// ID.
func (s *Service) enqueueItem(ctx context.Context, item *outbox.Item) (delayqueue.Enqueued, error) {
	job := item.Job
	job.Durable = item.Durable
	result := s.queues.EnqueueAccepted(ctx, item.Queue, []delayqueue.Job{job})[0]
	return result.Enqueued, result.Err
}

// recordSent records in Redis that the outbox sent a job, and then removes the item.
func (s *Service) recordSent(ctx context.Context, item *outbox.Item) error {
	if err := s.queues.RecordSent(ctx, item.Queue, item.Job, item.SentAt); err != nil {
		return err
	}
	return s.outbox.Remove(ctx, item)
}

// RemoveSent removes the outbox copies of jobs that were sent from Redis. If a removal fails,
// MoveToRedis removes the copy later.
func (s *Service) RemoveSent(ctx context.Context, queue string, jobs []delayqueue.Claimed) {
	if s.outbox == nil {
		return
	}
	var durable []string
	for i := range jobs {
		if jobs[i].Durable {
			durable = append(durable, jobs[i].ID)
		}
	}
	forEach(s.fanOut, durable, func(id string) {
		if err := s.outbox.RemoveID(ctx, queue, id); err != nil {
			s.log.WarnContext(ctx, "a durable job was sent, but is still in the outbox; it is removed later",
				"queue", queue, "job", id, "cause", err.Error())
		}
	})
}
