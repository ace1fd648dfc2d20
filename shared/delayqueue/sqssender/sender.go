// Package sqssender sends claimed jobs to SQS in batches, and returns a result for each job.
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
	maxBatchBytes = 1 << 20 // limit of one message, and of all messages of a batch
	maxAttributes = 10
)

// Outcome is the outcome of sending one job.
type Outcome int

// The outcomes.
const (
	Accepted Outcome = iota
	// Retry: SQS did not accept the job this time, or its reply is unknown. Sending the job again
	// may succeed.
	Retry
	// Poison: SQS will never accept the job.
	Poison
)

// Result is the outcome of one job. Reason explains an outcome other than Accepted.
type Result struct {
	Outcome Outcome
	Reason  string
	// Throttled reports whether SQS rejected the job because of too many requests.
	Throttled bool
}

// API is the part of the SQS client that a Sender uses.
type API interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput,
		...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// Sender sends jobs to SQS.
type Sender struct {
	client API
	// slots limits the number of concurrent batches.
	slots chan struct{}
}

// New returns a Sender that sends at most concurrency batches at a time.
func New(client API, concurrency int) *Sender {
	return &Sender{client: client, slots: make(chan struct{}, concurrency)}
}

// Send sends jobs to a queue and returns one result for each job, in the same order. It waits for
// the replies to all batches.
//
// On a FIFO queue, Send sends the batches of a message group in sequence. If one job of a batch
// gets the result Retry, Send does not send the later batches of the group: their jobs get the
// result Retry too. Later jobs of the same batch may still be accepted, and then they overtake the
// retried job.
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

// lanes groups jobs by message group and returns their indexes. The result free contains the jobs
// that are alone in their group. The result inOrder contains a list for each larger group: its
// jobs, in order.
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

// groupOf returns a job's message group. For a job without a group it returns the job ID, so that
// no other job waits for this job.
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

// deduplicationID returns the SQS deduplication ID of an attempt. It consists of the job ID, the
// attempt and the number of redrives. A redrive restarts the attempts at 1, so without the number
// of redrives SQS would drop the new attempts as duplicates. Job IDs contain no slash, so every
// deduplication ID is unique.
func deduplicationID(j *delayqueue.Claimed) string {
	id := j.ID + ":" + strconv.Itoa(j.Attempt)
	if j.Redrives > 0 {
		id += "/" + strconv.Itoa(j.Redrives)
	}
	return id
}

// batch is up to ten messages. The message entries[k] belongs to the job with the index jobs[k].
type batch struct {
	entries []types.SendMessageBatchRequestEntry
	jobs    []int
	bytes   int
}

// batches packs the jobs whose indexes are in members into batches, in order. A job that can never
// be sent gets the result Poison and is in no batch.
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
	// Start with Retry for each job: a job that is in neither list of the reply has an unknown
	// outcome and is sent again.
	for _, i := range b.jobs {
		results[i] = Result{Outcome: Retry, Reason: "SQS returned no result for the job"}
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

// ofEntry converts the failure of one entry to a result. SenderFault means that the message is
// invalid, except for a throttling error, which SQS may also mark as SenderFault.
func ofEntry(f types.BatchResultErrorEntry) Result {
	code := aws.ToString(f.Code)
	r := Result{Outcome: Retry, Reason: "SQS error: " + code, Throttled: throttling(code)}
	if f.SenderFault && !r.Throttled {
		r.Outcome = Poison
		if m := aws.ToString(f.Message); m != "" {
			r.Reason += ", " + m
		}
	}
	return r
}

// ofError converts the failure of a whole batch to a result. The failure says nothing about a
// single message, so no job is poison.
func ofError(err error) Result {
	r := Result{Outcome: Retry, Reason: "SQS did not reply"}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		r.Reason, r.Throttled = "SQS rejected the batch: "+api.ErrorCode(), throttling(api.ErrorCode())
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
