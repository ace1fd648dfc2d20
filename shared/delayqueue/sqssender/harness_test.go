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

// fakeSQS is a fake in the place of SQS: it keeps what it is sent and answers what the test says.
// No local SQS fails entry by entry, throttles or knows SQS' limits.
type fakeSQS struct {
	// answer says what becomes of a batch; nil accepts all of it.
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

// judge answers for each message by its job.
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

// sent are the ids of the jobs of each batch, in the order of the batches.
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

// send sends one batch after another, so that the batches stay in order.
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

// sized is a job whose payload has so many bytes.
func sized(id string, size int) delayqueue.Claimed {
	j := job(id)
	j.Payload = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
	return j
}

// weight is a batch's size as SQS counts it: bodies, and names, types and values of attributes.
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
