package consumer

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// lambdaMargin is kept from the function's own deadline for what a handler's end entails.
const lambdaMargin = time.Second

// Lambda is a handler for lambda.Start, for a function behind an SQS queue.
//
// The event source mapping must have FunctionResponseTypes: ReportBatchItemFailures; without it SQS
// would drop the messages that failed. A handler's context ends a second before the function's time
// does, and messages that were not begun by then are reported as failed.
func (c *Consumer) Lambda(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
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
	finished := make([]bool, len(messages))
	slots := make(chan struct{}, c.cfg.Concurrency)
	var wait sync.WaitGroup
	for _, group := range inGroups(messages, fifo) {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			for _, i := range group {
				if working.Err() != nil || !c.work(working, messages[i], fifo).done {
					return // what comes after it in the group waits for its next delivery
				}
				finished[i] = true
			}
		})
	}
	wait.Wait()
	var response events.SQSEventResponse
	for i, ok := range finished {
		if !ok {
			response.BatchItemFailures = append(response.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: messages[i].MessageID})
		}
	}
	return response, nil
}

// inGroups returns the indices of messages by what must be worked on one after another: a group of
// a FIFO queue, or else each message for itself.
func inGroups(messages []*Message, fifo bool) [][]int {
	var groups [][]int
	at := make(map[string]int)
	for i, m := range messages {
		g, known := at[m.Group]
		if !fifo || !known {
			at[m.Group] = len(groups)
			groups = append(groups, []int{i})
			continue
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}
