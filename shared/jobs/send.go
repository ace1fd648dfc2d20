package jobs

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
)

const (
	// sendBatch is the maximum number of due items that one SendDue reads.
	sendBatch = 100
	// An item that cannot be sent is not read again until unsendableDelay has passed. Otherwise
	// such items could fill every batch and leave no room for other items.
	unsendableDelay = 10 * time.Minute
	// A job that SQS did not accept is sent again after refusedDelay.
	refusedDelay = time.Minute
)

// Sending configures how due jobs of the outbox are sent.
type Sending struct {
	// Queues maps each queue that Send supports to the URL of its SQS queue. Jobs of other queues
	// are not sent.
	Queues map[string]string
	// Lease is the duration of the claim of each item. Send must return before the lease ends.
	Lease time.Duration
	// Send sends jobs of one queue to SQS and reports for each, in order, whether SQS accepted it.
	Send func(ctx context.Context, queue string, jobs []delayqueue.Claimed) []bool
}

// SendDue sends a batch of due jobs of the outbox, for use while Redis is unavailable. It returns
// the number of items that it claimed or postponed; 0 means that no item is left to send. It does
// not send expired jobs or jobs of paused queues. Reading and claiming stop when claimCtx ends;
// sending and recording outcomes stop when workCtx ends. Errors: store_unavailable, if the outbox
// cannot be read.
func (s *Service) SendDue(claimCtx, workCtx context.Context, sending Sending) (int, error) {
	if s.outbox == nil {
		return 0, nil
	}
	pauses, err := s.outbox.Pauses(claimCtx)
	if err != nil {
		return 0, err
	}
	items, err := s.outbox.Due(claimCtx, slices.Sorted(maps.Keys(pauses)), sendBatch)
	if err != nil {
		return 0, err
	}

	var claimed atomic.Int64
	forEach(s.fanOut, items, func(item *outbox.Item) {
		if s.claimToSend(claimCtx, item, sending) == nil {
			claimed.Add(1)
		}
	})
	byQueue := make(map[string][]*outbox.Item)
	for _, item := range items {
		if item.BeingSent(time.Now()) {
			byQueue[item.Queue] = append(byQueue[item.Queue], item)
		}
	}
	for queue, items := range byQueue {
		s.sendItems(workCtx, queue, items, sending)
	}
	return int(claimed.Load()), nil
}

// claimToSend claims an item, or postpones it if it cannot be sent.
func (s *Service) claimToSend(ctx context.Context, item *outbox.Item, sending Sending) error {
	if sending.Queues[item.Queue] == "" || expired(item) {
		return s.outbox.Release(ctx, item, unsendableDelay)
	}
	return s.outbox.ClaimToSend(ctx, item, sending.Lease)
}

func expired(item *outbox.Item) bool {
	return !item.Job.ExpiresAt.IsZero() && !item.Job.ExpiresAt.After(time.Now())
}

func (s *Service) sendItems(ctx context.Context, queue string, items []*outbox.Item, sending Sending) {
	jobs := make([]delayqueue.Claimed, len(items))
	for i, item := range items {
		j := &item.Job
		jobs[i] = delayqueue.Claimed{
			ID: j.ID, Attempt: 1, RunAt: j.RunAt, Payload: j.Payload,
			Group: j.Group, Headers: j.Headers, Trace: j.Trace,
		}
	}

	accepted := make(map[*outbox.Item]bool)
	for i, ok := range sending.Send(ctx, queue, jobs) {
		accepted[items[i]] = ok
	}
	forEach(s.fanOut, items, func(item *outbox.Item) {
		var err error
		if accepted[item] {
			err = s.outbox.MarkSent(ctx, item)
		} else {
			err = s.outbox.Release(ctx, item, refusedDelay)
		}
		if err != nil {
			s.log.ErrorContext(ctx, "the outbox did not record the outcome of a job", "queue", queue,
				"job", item.Job.ID, "accepted", accepted[item], "cause", err.Error())
		}
	})
}
