package sqssender

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func numbered(n int) []delayqueue.Claimed {
	jobs := make([]delayqueue.Claimed, n)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("j%02d", i))
	}
	return jobs
}

func TestSend(t *testing.T) {
	t.Run("batches have at most ten jobs", func(t *testing.T) {
		f := &fakeSQS{}
		for _, r := range send(t, f, plainURL, numbered(25)...) {
			require.Equal(t, Result{Outcome: Accepted}, r)
		}
		var sizes []int
		for _, b := range f.sent() {
			sizes = append(sizes, len(b))
		}
		require.ElementsMatch(t, []int{10, 10, 5}, sizes)
		for _, b := range f.batches {
			require.Equal(t, plainURL, aws.ToString(b.QueueUrl))
			seen := map[string]bool{}
			for _, e := range b.Entries {
				require.Nil(t, e.MessageGroupId)
				require.Nil(t, e.MessageDeduplicationId)
				require.False(t, seen[*e.Id], "the entry IDs of a batch are distinct")
				seen[*e.Id] = true
			}
		}
	})

	t.Run("no jobs: no call", func(t *testing.T) {
		f := &fakeSQS{}
		require.Empty(t, send(t, f, plainURL))
		require.Empty(t, send(t, f, fifoURL))
		require.Empty(t, f.batches)
	})

	t.Run("a batch has at most one mebibyte", func(t *testing.T) {
		f := &fakeSQS{}
		var jobs []delayqueue.Claimed
		for i := range 9 {
			jobs = append(jobs, sized(strconv.Itoa(i), delayqueue.MaxPayload))
		}
		for _, r := range send(t, f, plainURL, jobs...) {
			require.Equal(t, Accepted, r.Outcome)
		}
		var sizes []int
		for _, b := range f.batches {
			require.LessOrEqual(t, weight(b.Entries), maxBatchBytes)
			sizes = append(sizes, len(b.Entries))
		}
		require.ElementsMatch(t, []int{3, 3, 3}, sizes, "four payloads of 256 KiB leave no room for their attributes")
	})

	t.Run("a job that exceeds the maximum message size is poison", func(t *testing.T) {
		f := &fakeSQS{}
		overhead := weight([]types.SendMessageBatchRequestEntry{first(message(queue, new(sized("0", 2))))}) - 2
		results := send(t, f, plainURL, sized("0", maxBatchBytes-overhead), sized("1", maxBatchBytes-overhead+1),
			job("2"))
		require.Equal(t, Accepted, results[0].Outcome, "the message has exactly the maximum size")
		require.Equal(t, Poison, results[1].Outcome)
		require.NotEmpty(t, results[1].Reason)
		require.Equal(t, Accepted, results[2].Outcome)
	})

	// wolverine #3503, aws-samples #259: a reply with status 200 may contain Failed entries, which
	// must not count as sent.
	t.Run("each entry of a partial failure has its own result", func(t *testing.T) {
		failures := map[string]types.BatchResultErrorEntry{
			"j01": {Code: aws.String("InternalError")},
			"j03": {Code: aws.String("InvalidMessageContents"), Message: aws.String("bad character"),
				SenderFault: true},
			"j05": {Code: aws.String("ThrottlingException"), SenderFault: true},
			"j07": {Code: aws.String("AWS.SimpleQueueService.RequestThrottled"), SenderFault: true},
			"j08": {Code: aws.String("KmsThrottled")},
			"j11": {},
		}
		f := &fakeSQS{answer: judge(func(id string) *types.BatchResultErrorEntry {
			if failed, ok := failures[id]; ok {
				return &failed
			}
			return nil
		})}
		jobs := numbered(12)
		got := map[string]Result{}
		for i, r := range send(t, f, plainURL, jobs...) {
			if r.Outcome != Accepted {
				got[jobs[i].ID] = r
			}
		}
		require.Equal(t, map[string]Result{
			"j01": {Outcome: Retry, Reason: "SQS error: InternalError"},
			"j03": {Outcome: Poison, Reason: "SQS error: InvalidMessageContents, bad character"},
			"j05": {Outcome: Retry, Reason: "SQS error: ThrottlingException", Throttled: true},
			"j07": {Outcome: Retry, Reason: "SQS error: AWS.SimpleQueueService.RequestThrottled", Throttled: true},
			"j08": {Outcome: Retry, Reason: "SQS error: KmsThrottled", Throttled: true},
			"j11": {Outcome: Retry, Reason: "SQS error: "},
		}, got)
	})

	t.Run("a job without a result is sent again", func(t *testing.T) {
		f := &fakeSQS{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			return &sqs.SendMessageBatchOutput{Successful: []types.SendMessageBatchResultEntry{
				// The batch has no entries with the last four IDs.
				{Id: in.Entries[1].Id}, {Id: aws.String("99")}, {Id: aws.String("-1")}, {Id: aws.String("x")},
				{Id: nil},
			}}, nil
		}}
		results := send(t, f, plainURL, numbered(3)...)
		require.Equal(t, []Outcome{Retry, Accepted, Retry},
			[]Outcome{results[0].Outcome, results[1].Outcome, results[2].Outcome})
		require.NotEmpty(t, results[0].Reason)
	})

	t.Run("if a whole batch fails, none of its jobs becomes poison", func(t *testing.T) {
		for name, c := range map[string]struct {
			err       error
			throttled bool
		}{
			"no answer":     {errors.New("connection reset"), false},
			"access denied": {&smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}, false},
			"a bad parameter": {&smithy.GenericAPIError{Code: "InvalidParameterValue", Fault: smithy.FaultClient},
				false},
			"a nonexistent queue": {&types.QueueDoesNotExist{}, false},
			"too long":            {&types.BatchRequestTooLong{}, false},
			"throttling": {fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: "ThrottlingException"}),
				true},
			"throttling by type": {&types.RequestThrottled{}, true},
		} {
			t.Run(name, func(t *testing.T) {
				f := &fakeSQS{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
					if attribute(&in.Entries[0], "sluice-job-id") == "j00" {
						return nil, c.err
					}
					return acceptAll(in), nil
				}}
				results := send(t, f, plainURL, numbered(12)...)
				for _, r := range results[:10] {
					require.Equal(t, Retry, r.Outcome)
					require.Equal(t, c.throttled, r.Throttled)
					require.NotContains(t, r.Reason, "connection reset", "the reason omits the text of the SDK's error")
				}
				require.Equal(t, Accepted, results[10].Outcome, "the error does not affect the other batch")
			})
		}
	})

	t.Run("limits the number of concurrent batches", func(t *testing.T) {
		const bound = 3
		for name, url := range map[string]string{"a standard queue": plainURL, "a FIFO queue": fifoURL} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var now, most atomic.Int64
					f := &fakeSQS{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
						n := now.Add(1)
						defer now.Add(-1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						<-time.After(time.Second)
						return acceptAll(in), nil
					}}
					s := New(f, bound)
					done := make(chan []Result)
					for range 2 { // two calls share the bound
						go func() { done <- s.Send(t.Context(), queue, url, numbered(60)) }()
					}
					for range 2 {
						for _, r := range <-done {
							require.Equal(t, Accepted, r.Outcome)
						}
					}
					require.EqualValues(t, bound, most.Load())
				})
			})
		}
	})

	// For every reply of SQS, each job has one result. The result is Accepted if and only if SQS
	// has accepted the job.
	t.Run("every job has one result", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			fates := rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "fail", "poison", "throttle", "silence",
				"broken"}), 0,
				40).Draw(t, "fates")
			url := rapid.SampledFrom([]string{plainURL, fifoURL}).Draw(t, "url")
			jobs := numbered(len(fates))
			for i := range jobs {
				jobs[i].Group = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "group")
				if fates[i] == "broken" {
					jobs[i].Payload = []byte("\x00")
				}
			}
			accepted := map[string]int{}
			f := &fakeSQS{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
				out := &sqs.SendMessageBatchOutput{}
				for i := range in.Entries {
					id := attribute(&in.Entries[i], "sluice-job-id")
					n, _ := strconv.Atoi(id[1:])
					switch fates[n] {
					case "ok":
						accepted[id]++
						out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: in.Entries[i].Id})
					case "fail", "poison":
						out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: in.Entries[i].Id,
							Code: aws.String("X"), SenderFault: fates[n] == "poison"})
					case "throttle":
						out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: in.Entries[i].Id,
							Code: aws.String("OverLimit"), SenderFault: true})
					}
				}
				return out, nil
			}}
			for i, r := range New(f, 1).Send(t.Context(), queue, url, jobs) {
				if r.Outcome == Accepted != (accepted[jobs[i].ID] == 1) {
					t.Fatalf("%s (%s): %+v, accepted %d times", jobs[i].ID, fates[i], r, accepted[jobs[i].ID])
				}
				if poison := fates[i] == "poison" || fates[i] == "broken"; r.Outcome == Poison && !poison {
					t.Fatalf("%s (%s) is poison", jobs[i].ID, fates[i])
				}
			}
		})
	})
}

func first[T any](v T, _ int, _ string) T { return v }
