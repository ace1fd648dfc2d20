// Package sqssender sends claimed jobs to SQS in full batches, and accounts for every one of them.
package sqssender

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// Limits of SQS. See
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html.
const (
	maxEntries    = 10
	maxBatchBytes = 1 << 20 // of a message, and of all messages of a batch
	maxAttributes = 10
)

// Outcome is what became of one job.
type Outcome int

// The outcomes.
const (
	Accepted Outcome = iota
	// Retry: SQS did not take it now, or nobody knows; sending it again may help.
	Retry
	// Poison: SQS will never take it.
	Poison
)

// Result is the outcome of one job, and why it is not Accepted.
type Result struct {
	Outcome Outcome
	Reason  string
	// Throttled says that SQS asks for a slower pace.
	Throttled bool
}

// API is the part of the SQS client that a Sender uses.
type API interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput,
		...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Sender sends to SQS.
type Sender struct {
	client API
	// slots bounds the concurrent batches.
	slots chan struct{}
}

// New returns a Sender that sends at most concurrency batches concurrently.
func New(client API, concurrency int) *Sender {
	return &Sender{client: client, slots: make(chan struct{}, concurrency)}
}

// Send sends jobs to a queue and returns a result for each, in order. It never returns before it
// knows what can be known of each.
//
// To a FIFO queue jobs of one group are sent one batch after the other, and after a batch of which
// one is to be retried the rest of its group is not sent: their result is Retry. What SQS accepts
// of that very batch has overtaken the one that it did not.
func (s *Sender) Send(ctx context.Context, queue, url string, jobs []delayqueue.Claimed) []Result {
	results := make([]Result, len(jobs))
	fifo := strings.HasSuffix(url, ".fifo")
	free, inOrder := all(jobs), [][]int(nil)
	if fifo {
		free, inOrder = lanes(jobs)
	}
	var wait sync.WaitGroup
	for _, lane := range inOrder {
		wait.Go(func() { s.sendInOrder(ctx, queue, url, jobs, lane, results) })
	}
	for _, b := range batches(queue, fifo, jobs, free, results) {
		s.slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-s.slots }()
			s.sendBatch(ctx, url, b, results)
		})
	}
	wait.Wait()
	return results
}

func all(jobs []delayqueue.Claimed) []int {
	out := make([]int, len(jobs))
	for i := range out {
		out[i] = i
	}
	return out
}

// lanes are the jobs of each group, in order; free are those that are alone in theirs, and so wait
// for nobody.
func lanes(jobs []delayqueue.Claimed) (free []int, inOrder [][]int) {
	at := make(map[string]int)
	var groups [][]int
	for i := range jobs {
		g := groupOf(&jobs[i])
		if _, known := at[g]; !known {
			at[g] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[g]] = append(groups[at[g]], i)
	}
	for _, members := range groups {
		if len(members) == 1 {
			free = append(free, members[0])
			continue
		}
		inOrder = append(inOrder, members)
	}
	return free, inOrder
}

// groupOf is a job's message group. A job without one is a group of its own: nothing waits for it.
func groupOf(j *delayqueue.Claimed) string {
	if j.Group != "" {
		return j.Group
	}
	return j.ID
}

func (s *Sender) sendInOrder(ctx context.Context, queue, url string, jobs []delayqueue.Claimed, lane []int,
	results []Result) {
	blocked := false
	for _, b := range batches(queue, true, jobs, lane, results) {
		if blocked {
			for _, i := range b.jobs {
				results[i] = Result{Outcome: Retry, Reason: "an earlier job of its group was not accepted"}
			}
			continue
		}
		s.slots <- struct{}{}
		s.sendBatch(ctx, url, b, results)
		<-s.slots
		for _, i := range b.jobs {
			blocked = blocked || results[i].Outcome == Retry
		}
	}
}

// deduplicationID consists of the ID, the attempt and the number of redrives. A redriven job counts
// its attempts from 1 again, and SQS must not take them for earlier ones. IDs have no slash, so the
// results are unique.
func deduplicationID(j *delayqueue.Claimed) string {
	id := j.ID + ":" + strconv.Itoa(j.Attempt)
	if j.Redrives > 0 {
		id += "/" + strconv.Itoa(j.Redrives)
	}
	return id
}

// batch is up to ten messages; jobs are the indexes of theirs.
type batch struct {
	entries []types.SendMessageBatchRequestEntry
	jobs    []int
	bytes   int
}

// batches packs jobs in order. A job that can never be sent gets its result here and is in no
// batch.
func batches(queue string, fifo bool, jobs []delayqueue.Claimed, members []int, results []Result) []*batch {
	var out []*batch
	var open *batch
	for _, i := range members {
		entry, size, why := message(queue, &jobs[i])
		if why != "" {
			results[i] = Result{Outcome: Poison, Reason: why}
			continue
		}
		if fifo {
			entry.MessageGroupId, entry.MessageDeduplicationId = aws.String(groupOf(&jobs[i])),
				aws.String(deduplicationID(&jobs[i]))
		}
		if open == nil || len(open.entries) == maxEntries || open.bytes+size > maxBatchBytes {
			open = &batch{}
			out = append(out, open)
		}
		entry.Id = aws.String(strconv.Itoa(len(open.entries)))
		open.entries, open.jobs, open.bytes = append(open.entries, entry), append(open.jobs, i), open.bytes+size
	}
	return out
}

func (s *Sender) sendBatch(ctx context.Context, url string, b *batch, results []Result) {
	out, err := s.client.SendMessageBatch(ctx,
		&sqs.SendMessageBatchInput{QueueUrl: aws.String(url), Entries: b.entries})
	if err != nil {
		r := ofError(err)
		for _, i := range b.jobs {
			results[i] = r
		}
		return
	}
	// What is in neither list is unknown, and so sent again: successful and failed must add up to
	// what was sent.
	for _, i := range b.jobs {
		results[i] = Result{Outcome: Retry, Reason: "SQS did not say what became of it"}
	}
	for _, ok := range out.Successful {
		if i, known := b.job(ok.Id); known {
			results[i] = Result{Outcome: Accepted}
		}
	}
	for _, failed := range out.Failed {
		if i, known := b.job(failed.Id); known {
			results[i] = ofEntry(failed)
		}
	}
}

func (b *batch) job(id *string) (int, bool) {
	k, err := strconv.Atoi(aws.ToString(id))
	if err != nil || k < 0 || k >= len(b.jobs) {
		return 0, false
	}
	return b.jobs[k], true
}

// ofEntry reads the failure of one entry. SenderFault says that the message is wrong; throttling is
// none of the message's faults, whatever it says.
func ofEntry(f types.BatchResultErrorEntry) Result {
	code := aws.ToString(f.Code)
	r := Result{Outcome: Retry, Reason: "SQS refused it: " + code, Throttled: throttling(code)}
	if f.SenderFault && !r.Throttled {
		r.Outcome = Poison
		if m := aws.ToString(f.Message); m != "" {
			r.Reason += ", " + m
		}
	}
	return r
}

// ofError reads the failure of a whole batch. A request that is refused as such says nothing about
// one message, so none is poison.
func ofError(err error) Result {
	r := Result{Outcome: Retry, Reason: "SQS did not answer"}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		r.Reason, r.Throttled = "SQS refused the batch: "+api.ErrorCode(), throttling(api.ErrorCode())
	}
	return r
}

func throttling(code string) bool {
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled",
		"TooManyRequestsException":
		return true
	default:
		return false
	}
}
