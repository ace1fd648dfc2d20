package jobs

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// Pause stops the sending of a queue's jobs. The pause ends at the given time or at the next call
// to Resume. If the time is zero, only Resume ends the pause. DynamoDB stores the pause, and Redis
// enforces it. Errors: invalid_request if the time is out of range; store_unavailable. If only
// Redis is unavailable, the pause is stored and takes effect when Redis is available again.
func (s *Service) Pause(ctx context.Context, queue string, until time.Time) error {
	pause, err := delayqueue.Pause{Paused: true, Until: until}.Normalize()
	if err != nil {
		return err
	}
	if s.outbox == nil {
		return s.queues.Pause(ctx, queue, pause.Until)
	}
	if err := s.outbox.SetPause(ctx, queue, pause.Until); err != nil {
		return err
	}
	return s.ReloadPause(ctx, queue)
}

// Resume ends a pause, in DynamoDB and then in Redis. Errors: store_unavailable. If only Redis is
// unavailable, the queue resumes when Redis is available again.
func (s *Service) Resume(ctx context.Context, queue string) error {
	if s.outbox == nil {
		return s.queues.Resume(ctx, queue)
	}
	if err := s.outbox.ClearPause(ctx, queue); err != nil {
		return err
	}
	return s.ReloadPause(ctx, queue)
}

// Pauses reads the pauses of all paused queues from DynamoDB. Errors: store_unavailable.
func (s *Service) Pauses(ctx context.Context) (map[string]delayqueue.Pause, error) {
	if s.outbox == nil {
		return nil, nil
	}
	return s.outbox.Pauses(ctx)
}

// MaySend reports whether jobs that were just claimed from a shard may be sent: it returns false if
// their queue is paused. The check is needed because a Redis that has lost its data no longer has
// the pauses, so that a claim returns jobs of paused queues. The argument now is the time of the
// claim. Errors: store_unavailable.
func (s *Service) MaySend(ctx context.Context, queue string, shard int, now time.Time) (bool, error) {
	if s.outbox == nil {
		return true, nil
	}
	pause, err := s.queues.CurrentPause(ctx, queue, shard, now, s.readPause(queue))
	return err == nil && !pause.Paused, err
}

// ReloadPause copies the pause of a queue from DynamoDB to Redis. Errors: store_unavailable.
func (s *Service) ReloadPause(ctx context.Context, queue string) error {
	if s.outbox == nil {
		return nil
	}
	return s.queues.ReloadPause(ctx, queue, s.readPause(queue))
}

func (s *Service) readPause(queue string) delayqueue.ReadPause {
	return func(ctx context.Context) (delayqueue.Pause, error) { return s.outbox.Pause(ctx, queue) }
}
