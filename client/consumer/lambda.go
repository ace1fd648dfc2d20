package consumer

import (
	"context"
	"strings"
	"sync"
	"time"
)

// lambdaMargin is reserved before the function's own deadline for the end of the handlers.
const lambdaMargin = time.Second

// Lambda handles the messages of an event. Pass it to lambda.Start of
// github.com/aws/aws-lambda-go, in a function behind an SQS queue. Its error is always nil.
//
// The event source mapping must have FunctionResponseTypes: ReportBatchItemFailures. Without it,
// SQS deletes messages that failed. The handlers' context ends one second before the function's
// deadline; messages that no handler has started by then are reported as failed.
func (c *Consumer) Lambda(ctx context.Context, e Event) (EventResponse, error) {
	working := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		working, cancel = context.WithDeadline(ctx, deadline.Add(-lambdaMargin))
		defer cancel()
	}

	messages := make([]*Message, len(e.Records))
	for i := range e.Records {
		messages[i] = fromEvent(&e.Records[i])
	}
	fifo := len(e.Records) > 0 && strings.HasSuffix(e.Records[0].EventSourceARN, ".fifo")

	response := EventResponse{BatchItemFailures: []EventFailure{}}
	for i, ok := range c.workAll(working, messages, fifo) {
		if !ok {
			failure := EventFailure{ItemIdentifier: messages[i].MessageID}
			response.BatchItemFailures = append(response.BatchItemFailures, failure)
		}
	}
	return response, nil
}

// workAll handles messages concurrently, and reports which are done.
func (c *Consumer) workAll(ctx context.Context, messages []*Message, fifo bool) []bool {
	finished := make([]bool, len(messages))
	slots := make(chan struct{}, c.cfg.Concurrency)
	var wait sync.WaitGroup

	for _, group := range inGroups(messages, fifo) {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			for _, i := range group {
				if ctx.Err() != nil || !c.work(ctx, messages[i], fifo).done {
					return // the rest of the group waits for its next delivery
				}
				finished[i] = true
			}
		})
	}
	wait.Wait()
	return finished
}

// inGroups returns the indices of the messages in groups that must be handled in order: the message
// groups of a FIFO queue, or one group per message.
func inGroups(messages []*Message, fifo bool) [][]int {
	var groups [][]int
	byName := make(map[string]int) // the position in groups
	for i, m := range messages {
		g, exists := byName[m.Group]
		if fifo && exists {
			groups[g] = append(groups[g], i)
			continue
		}
		byName[m.Group] = len(groups)
		groups = append(groups, []int{i})
	}
	return groups
}
