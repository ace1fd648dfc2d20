package sqssender

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestFIFO(t *testing.T) {
	t.Run("the jobs of a group are sent in order", func(t *testing.T) {
		f := &fakeSQS{}
		var jobs []delayqueue.Claimed
		for i := range 50 {
			jobs = append(jobs, of("ab"[i%2:i%2+1], job(fmt.Sprintf("j%02d", i))))
		}
		for _, r := range New(f, 8).Send(t.Context(), queue, fifoURL, jobs) {
			require.Equal(t, Accepted, r.Outcome)
		}
		got := map[string][]string{}
		for _, e := range f.entries() {
			group := aws.ToString(e.MessageGroupId)
			got[group] = append(got[group], attribute(&e, "sluice-job-id"))
		}
		want := map[string][]string{}
		for _, j := range jobs {
			want[j.Group] = append(want[j.Group], j.ID)
		}
		require.Equal(t, want, got)
	})

	t.Run("a job without a group gets its own group", func(t *testing.T) {
		f := &fakeSQS{}
		send(t, f, fifoURL, of("g", job("a")), job("b"))
		groups := map[string]string{}
		for _, e := range f.entries() {
			groups[attribute(&e, "sluice-job-id")] = aws.ToString(e.MessageGroupId)
		}
		require.Equal(t, map[string]string{"a": "g", "b": "b"}, groups)
	})

	t.Run("jobs that are alone in their groups share full batches", func(t *testing.T) {
		f := &fakeSQS{answer: judge(func(id string) *types.BatchResultErrorEntry {
			if id == "j03" {
				return &types.BatchResultErrorEntry{Code: aws.String("InternalError")}
			}
			return nil
		})}
		jobs := append(numbered(20), of("g", job("g0")), of("g", job("g1")))
		results := send(t, f, fifoURL, jobs...)
		var sizes []int
		for _, b := range f.sent() {
			sizes = append(sizes, len(b))
		}
		require.ElementsMatch(t, []int{10, 10, 2}, sizes)
		for i, r := range results {
			require.Equal(t, jobs[i].ID == "j03", r.Outcome == Retry, "%s: a failed group must not affect others",
				jobs[i].ID)
		}
	})

	t.Run("no later batch of a group overtakes a job that SQS did not accept", func(t *testing.T) {
		var jobs []delayqueue.Claimed
		for i := range 25 {
			jobs = append(jobs, of("slow", job(fmt.Sprintf("s%02d", i))))
		}
		jobs = append(jobs, of("other", job("o")), job("alone"))
		f := &fakeSQS{answer: judge(func(id string) *types.BatchResultErrorEntry {
			if id == "s09" {
				return &types.BatchResultErrorEntry{Code: aws.String("InternalError")}
			}
			return nil
		})}
		results := send(t, f, fifoURL, jobs...)
		for i, r := range results {
			want := Accepted
			if i >= 9 && i < 25 {
				want = Retry
			}
			require.Equal(t, want, r.Outcome, jobs[i].ID)
		}
		for _, b := range f.sent() {
			require.NotContains(t, b, "s10", "a later batch of the group is not sent")
		}
	})

	t.Run("an error of a batch blocks its group only", func(t *testing.T) {
		f := &fakeSQS{answer: func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			if aws.ToString(in.Entries[0].MessageGroupId) == "a" {
				return nil, &types.RequestThrottled{}
			}
			return acceptAll(in), nil
		}}
		var jobs []delayqueue.Claimed
		for i := range 11 {
			jobs = append(jobs, of("a", job(fmt.Sprintf("a%02d", i))))
		}
		results := send(t, f, fifoURL, append(jobs, of("b", job("b")))...)
		require.True(t, results[0].Throttled)
		require.Equal(t, Retry, results[10].Outcome)
		require.Equal(t, Accepted, results[11].Outcome)
	})

	t.Run("a job that SQS can never accept does not block its group", func(t *testing.T) {
		f := &fakeSQS{}
		bad := of("g", job("bad"))
		bad.Payload = []byte("\x00")
		results := send(t, f, fifoURL, bad, of("g", job("next")))
		require.Equal(t, Poison, results[0].Outcome)
		require.Equal(t, Accepted, results[1].Outcome)
	})
}

func TestDeduplicationID(t *testing.T) {
	t.Run("each attempt has a different ID", func(t *testing.T) {
		seen := map[string]delayqueue.Claimed{}
		for _, id := range []string{"a", "a:1", "a:1:2", "a:2", "1"} {
			for _, attempt := range []int{1, 2, 11, 12} {
				for _, redrives := range []int{0, 1, 2, 12} {
					j := delayqueue.Claimed{ID: id, Attempt: attempt, Redrives: redrives}
					got := deduplicationID(&j)
					require.NotContains(t, seen, got, "SQS would drop %+v or %+v as a duplicate", j, seen[got])
					seen[got] = j
				}
			}
		}
	})

	t.Run("is sent and has at most 128 characters", func(t *testing.T) {
		f := &fakeSQS{}
		longest := job(strings.Repeat("i", 116))
		longest.Attempt, longest.Redrives = 100, 9_999_999
		redriven := job("b")
		redriven.Redrives = 1
		send(t, f, fifoURL, job("a"), redriven, longest)
		var got []string
		for _, e := range f.entries() {
			got = append(got, aws.ToString(e.MessageDeduplicationId))
			require.LessOrEqual(t, len(aws.ToString(e.MessageDeduplicationId)), 128)
		}
		require.ElementsMatch(t, []string{"a:1", "b:1/1", longest.ID + ":100/9999999"}, got)
	})
}
