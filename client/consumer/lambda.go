package consumer

import (
	"context"
	"strings"
	"sync"
	"time"
)

// lambdaMargin is the time between the end of the handlers' context and the deadline of the
// function.
const lambdaMargin = time.Second

// Lambda handles the messages of an event. Pass it to lambda.Start of github.com/aws/aws-lambda-go,
// in a function that an SQS queue triggers. Its error is always nil.
//
// The event source mapping must have FunctionResponseTypes: ReportBatchItemFailures. Without this
// setting, AWS Lambda also deletes failed messages. The handlers' context ends one second before
// the function's deadline. If the handler of a message has not started by then, the message is
// reported as failed.
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

// workAll handles messages concurrently, and reports for each message whether it is done.
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
					return // SQS delivers the rest of the group again
				}
				finished[i] = true
			}
		})
	}
	wait.Wait()
	return finished
}

// inGroups returns one list of message indices per group. The messages of a group must be handled
// in order. In a FIFO queue, the groups are the message groups. In other queues, each message is a
// group of its own.
func inGroups(messages []*Message, fifo bool) [][]int {
	var groups [][]int
	byName := make(map[string]int) // the index in groups
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
