package jobs

import (
	"context"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// Stats are the counts of a queue in both stores.
type Stats struct {
	delayqueue.Stats

	// Outbox is the number of jobs that are only in the outbox, or nil if the outbox cannot be
	// read.
	Outbox *int64
}

// Stats counts the jobs of a queue. It reads the pause from DynamoDB, or from Redis if DynamoDB is
// unavailable. Errors: store_unavailable, if Redis is unavailable.
func (s *Service) Stats(ctx context.Context, queue string) (Stats, error) {
	inRedis, err := s.queues.Stats(ctx, queue)
	if err != nil {
		return Stats{}, err
	}
	stats := Stats{Stats: inRedis}
	if s.outbox == nil {
		return stats, nil
	}
	if n, err := s.outbox.Count(ctx, queue); err == nil {
		stats.Outbox = &n
	}
	if pause, err := s.outbox.Pause(ctx, queue); err == nil {
		stats.Paused = pause.Paused
	}
	return stats, nil
}
