package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// inbox is an SQS consumer that records every arrival of each job.
type inbox struct {
	client *sqs.Client
	queue  string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each arrival
	arrived map[string][]arrival
}

type arrival struct {
	at    time.Time
	runAt time.Time
	body  string
}

// lateness returns the time from run_at to the arrival at the consumer.
func (a arrival) lateness() time.Duration { return a.at.Sub(a.runAt) }

func newInbox(client *sqs.Client, queue string) *inbox {
	return &inbox{client: client, queue: queue, changed: make(chan struct{}), arrived: make(map[string][]arrival)}
}

func (i *inbox) receive(ctx context.Context) {
	for ctx.Err() == nil {
		out, err := i.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(i.queue), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			continue // retries, or ends with the context
		}
		now := time.Now()
		for _, m := range out.Messages {
			i.record(now, m)
			_, _ = i.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: aws.String(i.queue),
				ReceiptHandle: m.ReceiptHandle})
		}
	}
}

// record records the arrival of a message.
func (i *inbox) record(now time.Time, m types.Message) {
	attribute := func(name string) string { return aws.ToString(m.MessageAttributes[name].StringValue) }
	var runAt int64
	_, _ = fmt.Sscan(attribute("sluice-run-at"), &runAt)
	i.mu.Lock()
	defer i.mu.Unlock()
	id := attribute("sluice-job-id")
	i.arrived[id] = append(i.arrived[id], arrival{at: now, runAt: time.UnixMilli(runAt), body: aws.ToString(m.Body)})
	close(i.changed)
	i.changed = make(chan struct{})
}

// await returns the first arrival of a job. It waits up to timeout.
func (i *inbox) await(ctx context.Context, id string, timeout time.Duration) (arrival, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		i.mu.Lock()
		got, changed := i.arrived[id], i.changed
		i.mu.Unlock()
		if len(got) > 0 {
			return got[0], nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			return arrival{}, fmt.Errorf("job %s did not arrive in SQS after %s", id, timeout)
		case <-ctx.Done():
			return arrival{}, ctx.Err()
		}
	}
}

// times returns the number of arrivals of a job.
func (i *inbox) times(id string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.arrived[id])
}
