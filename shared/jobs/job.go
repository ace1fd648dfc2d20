package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
)

// Get reads a job. Errors: job_not_found, store_unavailable.
//
// Get reads Redis, then the outbox, and then Redis again, because the job may move to Redis between
// the first two reads.
func (s *Service) Get(ctx context.Context, queue, id string) (delayqueue.Info, error) {
	info, err := s.queues.Get(ctx, queue, id)
	if !isNotFound(err) {
		return info, err
	}
	item, err := s.find(ctx, queue, id)
	switch {
	case err != nil:
		return delayqueue.Info{}, err
	case item != nil:
		return infoOf(item), nil
	default:
		return s.queues.Get(ctx, queue, id)
	}
}

func infoOf(item *outbox.Item) delayqueue.Info {
	state, attempt := item.JobState()
	j := &item.Job
	return delayqueue.Info{
		ID: j.ID, State: state, RunAt: j.RunAt, DispatchedAt: item.SentAt, Attempt: attempt,
		MaxAttempts: j.MaxAttempts, Payload: j.Payload, Group: j.Group, Headers: j.Headers,
		ExpiresAt: j.ExpiresAt, Durable: item.Durable,
	}
}

// Cancel cancels a scheduled job. Canceling it again succeeds. Errors: job_not_found; job_conflict
// if the job is no longer scheduled; store_unavailable, after which the job may or may not be
// canceled.
func (s *Service) Cancel(ctx context.Context, queue, id string) (delayqueue.Info, error) {
	cancel := func() (delayqueue.Info, error) { return s.queues.Cancel(ctx, queue, id) }

	return s.change(ctx, queue, id, cancel, func(item *outbox.Item) (delayqueue.Info, error) {
		info, err := cancel()
		if isNotFound(err) {
			// Record the cancellation in Redis. This call may have taken over the claim of a
			// process that is moving the job. That process then finds the canceled job in Redis and
			// enqueues nothing.
			if err = s.queues.RecordCanceled(ctx, queue, item.Job); err == nil {
				info, err = cancel()
			}
		}
		if err != nil {
			return delayqueue.Info{}, err
		}
		return info, s.outbox.Remove(ctx, item)
	})
}

// Reschedule changes the due time or the payload of a scheduled job and returns the job. Errors:
// job_not_found; job_conflict if the job is no longer scheduled; store_unavailable, after which the
// job may or may not be changed.
func (s *Service) Reschedule(ctx context.Context, queue, id string,
	change delayqueue.Change) (delayqueue.Info, error) {
	change, err := change.Normalize()
	if err != nil {
		return delayqueue.Info{}, err
	}
	inRedis := func() (delayqueue.Info, error) { return s.queues.Reschedule(ctx, queue, id, change) }

	_, err = s.change(ctx, queue, id, inRedis, func(item *outbox.Item) (delayqueue.Info, error) {
		if _, err := s.enqueueItem(ctx, item); err != nil {
			return delayqueue.Info{}, err
		}
		info, err := inRedis()
		switch {
		case err != nil:
			return delayqueue.Info{}, err
		case item.Durable:
			return info, s.outbox.Change(ctx, item, info.RunAt, change.Payload)
		default:
			return info, s.outbox.Remove(ctx, item)
		}
	})
	if err != nil {
		return delayqueue.Info{}, err
	}
	return s.queues.Get(ctx, queue, id)
}

// change changes a job in the stores that have it. If the outbox has an item of the job that was
// not sent yet, change claims the item and calls inBoth; otherwise it calls inRedis.
//
// change reads the outbox first: jobs move only from the outbox to Redis, so a job that it finds in
// neither store does not exist.
func (s *Service) change(ctx context.Context, queue, id string, inRedis func() (delayqueue.Info, error),
	inBoth func(*outbox.Item) (delayqueue.Info, error)) (delayqueue.Info, error) {
	for range maxRaces {
		item, err := s.find(ctx, queue, id)
		if err != nil {
			return delayqueue.Info{}, err
		}
		if item == nil {
			return inRedis()
		}
		info, err := s.changeItem(ctx, item, inRedis, inBoth)
		if !errors.Is(err, outbox.ErrClaimLost) {
			return info, err
		}
	}
	return delayqueue.Info{}, tooManyRaces()
}

func (s *Service) changeItem(ctx context.Context, item *outbox.Item, inRedis func() (delayqueue.Info, error),
	inBoth func(*outbox.Item) (delayqueue.Info, error)) (delayqueue.Info, error) {
	switch {
	case item.State == outbox.Sent:
		if err := s.recordSent(ctx, item); err != nil {
			return delayqueue.Info{}, err
		}
		return inRedis()
	case item.BeingSent(time.Now()):
		return delayqueue.Info{}, conflict(item)
	}

	if err := s.outbox.ClaimToMove(ctx, item, claimLease); err != nil {
		return delayqueue.Info{}, err
	}
	info, err := inBoth(item)
	if err != nil && !errors.Is(err, outbox.ErrClaimLost) {
		s.release(ctx, item)
	}
	return info, err
}

// Ack records that an attempt succeeded. Errors: job_not_found; job_conflict if the job does not
// await an acknowledgement of this attempt; store_unavailable.
func (s *Service) Ack(ctx context.Context, queue, id string, attempt int) (delayqueue.Info, error) {
	return s.acknowledge(ctx, queue, id, func() (delayqueue.Info, error) {
		return s.queues.Ack(ctx, queue, id, attempt)
	})
}

// Nack records that an attempt failed. The job is scheduled again, or is dead after its last
// attempt. Errors: the same as Ack.
func (s *Service) Nack(ctx context.Context, queue, id string, attempt int,
	o delayqueue.NackOptions) (delayqueue.Info, error) {
	return s.acknowledge(ctx, queue, id, func() (delayqueue.Info, error) {
		return s.queues.Nack(ctx, queue, id, attempt, o)
	})
}

// acknowledge acknowledges an attempt in Redis. If Redis has no record that the job was sent, but
// the job was sent from the outbox, acknowledge records the sending in Redis and tries again.
func (s *Service) acknowledge(ctx context.Context, queue, id string,
	inRedis func() (delayqueue.Info, error)) (delayqueue.Info, error) {
	info, err := inRedis()
	if !isNotFound(err) && !neverSent(err) {
		return info, err
	}
	item, findErr := s.find(ctx, queue, id)
	if findErr != nil {
		return delayqueue.Info{}, findErr
	}

	switch {
	case item != nil && item.State == outbox.Sent:
		if err := s.recordSent(ctx, item); err != nil && !errors.Is(err, outbox.ErrClaimLost) {
			return delayqueue.Info{}, err
		}
		return inRedis()
	case item != nil:
		return delayqueue.Info{}, conflict(item)
	case isNotFound(err):
		return inRedis() // the job may have moved to Redis since the first call
	default:
		return info, err
	}
}

// List reads a page of a queue's jobs in Redis; see [delayqueue.Queues.List].
func (s *Service) List(ctx context.Context, queue string, o delayqueue.ListOptions) (delayqueue.Page, error) {
	return s.queues.List(ctx, queue, o)
}

// Redrive schedules dead jobs again; see [delayqueue.Queues.Redrive].
func (s *Service) Redrive(ctx context.Context, queue string, o delayqueue.RedriveOptions) (int64, error) {
	return s.queues.Redrive(ctx, queue, o)
}
