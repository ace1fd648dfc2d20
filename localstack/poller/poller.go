// Package poller delivers SQS messages to a function. It replaces Lambda's event source mappings,
// which kumo, the local AWS, does not implement. The function reports failed messages as described
// in
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting.
package poller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SQS is the part of the SQS client that a Poller uses.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput,
		...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Invoker invokes a function and waits for its answer.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// Mapping connects a queue to a function whose answers report failed messages
// (ReportBatchItemFailures).
type Mapping struct {
	QueueURL, Function string
	// BatchSize is the maximum number of messages per invocation, 1 to 10. Default 10.
	BatchSize int32
	// OnError receives every error of a receive, an invocation or a delete. Optional.
	OnError func(error)
}

// Poller receives messages until it is stopped.
type Poller struct {
	sqs     SQS
	invoker Invoker
	m       Mapping
	cancel  context.CancelFunc
	wait    sync.WaitGroup
}

// Start starts a Poller.
func Start(client SQS, invoker Invoker, m Mapping) *Poller {
	if m.BatchSize == 0 {
		m.BatchSize = 10
	}
	if m.OnError == nil {
		m.OnError = func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Poller{sqs: client, invoker: invoker, m: m, cancel: cancel}
	p.wait.Go(func() { p.run(ctx) })
	return p
}

// Stop stops the Poller. It abandons the batch in flight. The messages become visible again after
// the queue's visibility timeout.
func (p *Poller) Stop() {
	p.cancel()
	p.wait.Wait()
}

// retryAfter is the pause after an error, before the next receive.
const retryAfter = time.Second

func (p *Poller) run(ctx context.Context) {
	for ctx.Err() == nil {
		batch, err := p.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(p.m.QueueURL), MaxNumberOfMessages: p.m.BatchSize, WaitTimeSeconds: 1,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err == nil && len(batch.Messages) > 0 {
			err = p.deliver(ctx, batch.Messages)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		p.m.OnError(err)
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// deliver invokes the function with a batch and deletes the messages that the function does not
// report as failed.
func (p *Poller) deliver(ctx context.Context, batch []types.Message) error {
	payload, err := json.Marshal(p.event(batch))
	if err != nil {
		return fmt.Errorf("error encoding a batch: %w", err)
	}
	answer, err := p.invoker.Invoke(ctx, p.m.Function, payload)
	if err != nil {
		return fmt.Errorf("a batch of %d messages failed: %w", len(batch), err)
	}
	finished, err := finished(batch, answer)
	if err != nil || len(finished) == 0 {
		return err
	}
	if _, err := p.sqs.DeleteMessageBatch(ctx,
		&sqs.DeleteMessageBatchInput{QueueUrl: aws.String(p.m.QueueURL), Entries: finished}); err != nil {
		return fmt.Errorf("error deleting a batch: %w", err)
	}
	return nil
}

// finished returns the messages to delete. It returns an error, which fails the complete batch, if
// it cannot decode the answer or if the answer names a message that is not in the batch.
func finished(batch []types.Message, answer []byte) ([]types.DeleteMessageBatchRequestEntry, error) {
	var response events.SQSEventResponse
	if text := strings.TrimSpace(string(answer)); text != "" && text != "null" {
		if err := json.Unmarshal(answer, &response); err != nil {
			return nil, fmt.Errorf("a batch of %d messages failed: the answer is not a partial batch response: %w",
				len(batch), err)
		}
	}
	failed := make(map[string]bool, len(response.BatchItemFailures))
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	var out []types.DeleteMessageBatchRequestEntry
	for _, m := range batch {
		id := aws.ToString(m.MessageId)
		if failed[id] {
			delete(failed, id)
			continue
		}
		out = append(out, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprintf("m%d", len(out))),
			ReceiptHandle: m.ReceiptHandle})
	}
	for id := range failed {
		return nil, fmt.Errorf("a batch of %d messages failed: the answer names message %q, which is not in the batch",
			len(batch), id)
	}
	return out, nil
}

// event returns the Lambda event for a batch.
func (p *Poller) event(batch []types.Message) events.SQSEvent {
	var e events.SQSEvent
	name := p.m.QueueURL[strings.LastIndexByte(p.m.QueueURL, '/')+1:]
	for _, m := range batch {
		record := events.SQSMessage{
			MessageId: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle),
			Body:      aws.ToString(m.Body),
			Md5OfBody: aws.ToString(m.MD5OfBody), Attributes: m.Attributes,
			MessageAttributes: make(map[string]events.SQSMessageAttribute),
			EventSource:       "aws:sqs", EventSourceARN: "arn:aws:sqs:local:000000000000:" + name, AWSRegion: "local",
		}
		for key, a := range m.MessageAttributes {
			record.MessageAttributes[key] = events.SQSMessageAttribute{StringValue: a.StringValue,
				BinaryValue: a.BinaryValue, DataType: aws.ToString(a.DataType)}
		}
		e.Records = append(e.Records, record)
	}
	return e
}
