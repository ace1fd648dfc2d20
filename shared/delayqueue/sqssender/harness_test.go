package sqssender

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

const (
	queue    = "orders"
	plainURL = "https://sqs.test/1/orders"
	fifoURL  = "https://sqs.test/1/orders.fifo"
)

// fakeSQS is a fake SQS that records each batch and returns the reply of the test. SQS emulators do
// not simulate failures of single entries, throttling or the limits of SQS.
type fakeSQS struct {
	// answer returns the reply to a batch. If answer is nil, every message is accepted.
	answer func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error)

	mu      sync.Mutex
	batches []*sqs.SendMessageBatchInput
}

// SendMessageBatch implements API.
func (f *fakeSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput,
	_ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	f.mu.Lock()
	f.batches = append(f.batches, in)
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(in)
	}
	return acceptAll(in), nil
}

func acceptAll(in *sqs.SendMessageBatchInput) *sqs.SendMessageBatchOutput {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out
}

// judge returns a function for the field answer. It calls the function by with the job ID of each
// message. A result of nil accepts the message; any other result is the failure of the message.
func judge(
	by func(id string) *types.BatchResultErrorEntry,
) func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	return func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		out := &sqs.SendMessageBatchOutput{}
		for i := range in.Entries {
			e := &in.Entries[i]
			if failed := by(attribute(e, "sluice-job-id")); failed != nil {
				failed.Id = e.Id
				out.Failed = append(out.Failed, *failed)
				continue
			}
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		}
		return out, nil
	}
}

func attribute(e *types.SendMessageBatchRequestEntry, name string) string {
	return aws.ToString(e.MessageAttributes[name].StringValue)
}

// sent returns the job IDs of each batch, in the order of the batches.
func (f *fakeSQS) sent() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out [][]string
	for _, b := range f.batches {
		var ids []string
		for i := range b.Entries {
			ids = append(ids, attribute(&b.Entries[i], "sluice-job-id"))
		}
		out = append(out, ids)
	}
	return out
}

func (f *fakeSQS) entries() []types.SendMessageBatchRequestEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []types.SendMessageBatchRequestEntry
	for _, b := range f.batches {
		out = append(out, b.Entries...)
	}
	return out
}

// send sends jobs with concurrency 1, so that the batches arrive in order.
func send(t testing.TB, f *fakeSQS, url string, jobs ...delayqueue.Claimed) []Result {
	t.Helper()
	return New(f, 1).Send(t.Context(), queue, url, jobs)
}

func job(id string) delayqueue.Claimed {
	return delayqueue.Claimed{ID: id, Attempt: 1, RunAt: time.UnixMilli(1_750_000_000_000),
		Payload: json.RawMessage(`{"id":"` + id + `"}`)}
}

func of(group string, j delayqueue.Claimed) delayqueue.Claimed {
	j.Group = group
	return j
}

// sized returns a job with a payload of size bytes.
func sized(id string, size int) delayqueue.Claimed {
	j := job(id)
	j.Payload = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
	return j
}

// weight returns the size of a batch as SQS counts it: the bodies, and the names, types and values
// of the attributes.
func weight(entries []types.SendMessageBatchRequestEntry) int {
	total := 0
	for _, e := range entries {
		total += len(aws.ToString(e.MessageBody))
		for name, v := range e.MessageAttributes {
			total += len(name) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue))
		}
	}
	return total
}
