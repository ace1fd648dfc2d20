package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	maxBatch = 500 // jobs in one request
	// maxBatchBytes keeps a request below the API's limit of 1 MiB.
	maxBatchBytes = 1<<20 - 4096
)

// PushResult is the result of one job of a batch.
type PushResult struct {
	// Receipt describes the job. If Err is set, only its ID and Queue are valid.
	Receipt

	// Err is the error of this job, or nil.
	Err error
}

// PushBatch enqueues any number of jobs, in requests of up to 500 jobs and 1 MiB. Each job succeeds
// or fails independently of the others. The results are in the order of the jobs. Each contains the
// job's ID: a retry with this ID cannot enqueue the job twice.
//
// The returned error joins the errors of whole requests. The error of a single job is only in its
// result.
func (q *Queue) PushBatch(ctx context.Context, jobs []Job) ([]PushResult, error) {
	op := fmt.Sprintf("pushing jobs to the queue %q", q.name)
	if err := checkName(op, "queue", q.name); err != nil {
		return nil, err
	}

	results := make([]PushResult, len(jobs))
	b := &pushBatch{queue: q, op: op}
	for i, j := range jobs {
		generated := j.ID == ""
		if generated {
			j.ID = rand.Text()
		}
		results[i].Receipt = Receipt{ID: j.ID, Queue: q.name}

		text, err := j.encode()
		if err != nil {
			results[i].Err = fmt.Errorf("error %s: job %d: %w", op, i, err)
			continue
		}
		b.add(ctx, batchItem{index: i, generated: generated, text: text, result: &results[i]})
	}
	b.flush(ctx)
	return results, errors.Join(b.errs...)
}

func (j Job) encode() (json.RawMessage, error) {
	body, err := j.body()
	if err != nil {
		return nil, err
	}
	return encodeJSON(body)
}

// batchItem is an encoded job of a batch.
type batchItem struct {
	index     int  // position in the jobs of the caller
	generated bool // whether PushBatch generated the ID
	text      json.RawMessage
	result    *PushResult
}

// pushBatch collects jobs into requests.
type pushBatch struct {
	queue *Queue
	op    string

	items []batchItem
	size  int // bytes of items
	errs  []error
}

// add adds an item to the current request. If the item does not fit, add first sends the request
// and starts a new request.
func (b *pushBatch) add(ctx context.Context, item batchItem) {
	if len(b.items) == maxBatch || len(b.items) > 0 && b.size+len(item.text) > maxBatchBytes {
		b.flush(ctx)
	}
	b.items = append(b.items, item)
	b.size += len(item.text) + 1 // the comma
}

// flush sends the items and fills in their results.
func (b *pushBatch) flush(ctx context.Context) {
	if len(b.items) == 0 {
		return
	}
	items := b.items
	b.items, b.size = nil, 0

	answers, r, err := b.send(ctx, items)
	if err != nil {
		b.errs = append(b.errs, err)
		for _, item := range items {
			item.result.Err = err
		}
		return
	}
	for i, answer := range answers {
		items[i].fill(b.op, answer, r)
	}
}

// batchAnswer is the API's answer for one job: a receipt or an error.
type batchAnswer struct {
	Receipt

	Error *problem `json:"error"`
}

func (b *pushBatch) send(ctx context.Context, items []batchItem) ([]batchAnswer, reply, error) {
	texts := make([]json.RawMessage, len(items))
	for i, item := range items {
		texts[i] = item.text
	}
	var out struct {
		Results []batchAnswer `json:"results"`
	}
	r, err := b.queue.client.do(ctx, call{
		op: b.op, method: "POST", path: pathTo("v1", "queues", b.queue.name, "jobs", "batch"),
		body: map[string]any{"jobs": texts}, out: &out,
	})
	if err == nil && len(out.Results) != len(items) {
		err = &Error{
			Op: b.op, Code: CodeUnexpected, Status: r.status,
			Detail: fmt.Sprintf("the answer has %d results for %d jobs", len(out.Results), len(items)),
		}
	}
	return out.Results, r, err
}

func (i batchItem) fill(op string, answer batchAnswer, r reply) {
	if answer.Error != nil {
		i.result.Err = answer.Error.asError(fmt.Sprintf("%s: job %d", op, i.index), nil)
		return
	}
	i.result.Receipt = answer.Receipt
	i.result.Degraded = r.header.Get("Sluice-Degraded")
	if i.generated && r.uncertain {
		i.result.Duplicate = false // an earlier attempt of this call enqueued the job
	}
}
