package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
)

const (
	queue = "orders"
	base  = int64(1_750_000_000_000) // an instant in ms
)

// box is an Outbox on a clock that the test moves.
type box struct {
	*Outbox

	nowMS atomic.Int64
}

func newBox(t testing.TB) *box {
	t.Helper()
	local := awstest.Start(t)
	b := &box{Outbox: New(local.DynamoDB, local.CreateTable(t, TableInput(redistest.Name("outbox"))))}
	b.nowMS.Store(base)
	b.now = func() time.Time { return time.UnixMilli(b.nowMS.Load()) }
	return b
}

func job(id string, runAtMS int64) delayqueue.Job {
	return delayqueue.Job{ID: id, Payload: json.RawMessage(`{"id":"` + id + `"}`), RunAtMS: runAtMS, MaxAttempts: 1, Backoff: delayqueue.DefaultBackoff()}
}

// put takes in jobs that must be new.
func (b *box) put(t testing.TB, durable bool, jobs ...delayqueue.Job) {
	t.Helper()
	results, errs := b.Put(t.Context(), queue, jobs, durable)
	for i := range jobs {
		require.NoError(t, errs[i])
		require.False(t, results[i].Duplicate)
	}
}

// due is what is due at an instant, without a bound.
func (b *box) due(t testing.TB, atMS int64) []Item {
	t.Helper()
	items, err := b.Due(t.Context(), atMS, 10_000)
	require.NoError(t, err)
	return items
}

func (b *box) toReturn(t testing.TB, untilMS int64) []Item {
	t.Helper()
	items, err := b.ToReturn(t.Context(), untilMS, 10_000)
	require.NoError(t, err)
	return items
}

// claimed claims an item, which must succeed.
func (b *box) claim(t testing.TB, item *Item) {
	t.Helper()
	ok, err := b.Claim(t.Context(), item, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
}

func (b *box) markSent(t testing.TB, item *Item) {
	t.Helper()
	b.claim(t, item)
	ok, err := b.MarkSent(t.Context(), item)
	require.NoError(t, err)
	require.True(t, ok)
}

func (b *box) count(t testing.TB) int64 {
	t.Helper()
	n, err := b.Count(t.Context(), queue)
	require.NoError(t, err)
	return n
}

func ids(items []Item) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = items[i].Job.ID
	}
	return out
}

func TestAJobThatWasTakenInIsDueAtItsTimeWithAllThatItHad(t *testing.T) {
	b := newBox(t)
	want := job("a", base+5000)
	want.Group, want.Headers, want.Trace, want.MaxAttempts, want.AckTimeout = "g", map[string]string{"k": "v"}, "00-trace", 3, time.Minute
	want.ExpiresAtMS = base + 9000
	b.put(t, false, want)

	require.Empty(t, b.due(t, base+4999))
	items := b.due(t, base+5000)
	require.Len(t, items, 1)
	require.Equal(t, want, items[0].Job)
	require.Equal(t, queue, items[0].Queue)
	require.False(t, items[0].Durable)
	require.False(t, items[0].Sent)
}

func TestADelayCountsFromTheClockOfWhoTookTheJobIn(t *testing.T) {
	b := newBox(t)
	j := job("a", 0)
	j.Delay = 1500 * time.Millisecond
	results, errs := b.Put(t.Context(), queue, []delayqueue.Job{j, job("past", 1)}, false)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, base+1500, results[0].RunAtMS)
	require.Equal(t, base, results[1].RunAtMS, "the past means now")
}

func TestAJobThatIsTakenInTwiceIsThereOnce(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base+1000))
	results, errs := b.Put(t.Context(), queue, []delayqueue.Job{job("a", base+9000), job("b", base+9000)}, false)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, delayqueue.Enqueued{ID: "a", State: delayqueue.Scheduled, RunAtMS: base + 1000, Duplicate: true}, results[0], "it stands as it was")
	require.False(t, results[1].Duplicate, "each job for itself")
	require.ElementsMatch(t, []string{"a", "b"}, ids(b.due(t, base+9000)))
}

func TestAKnownIDWithAnotherContentSaysSo(t *testing.T) {
	b := newBox(t)
	b.put(t, true, job("a", base+1000))
	for name, change := range map[string]func(*delayqueue.Job){
		"payload": func(j *delayqueue.Job) { j.Payload = json.RawMessage(`2`) },
		"group":   func(j *delayqueue.Job) { j.Group = "g" },
		"headers": func(j *delayqueue.Job) { j.Headers = map[string]string{"a": "b"} },
	} {
		j := job("a", base+1000)
		change(&j)
		results, errs := b.Put(t.Context(), queue, []delayqueue.Job{j}, true)
		require.NoError(t, errs[0])
		require.True(t, results[0].Duplicate, name)
		require.True(t, results[0].Differs, name)
	}
}

func TestTheSameIDInAnotherQueueIsAnotherJob(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	results, errs := b.Put(t.Context(), "other", []delayqueue.Job{job("a", base)}, false)
	require.NoError(t, errs[0])
	require.False(t, results[0].Duplicate)
	require.Len(t, b.due(t, base), 2)
	require.EqualValues(t, 1, b.count(t))
}

func TestOfManyWhoTakeInOneIDAtOnceOneIsTheFirst(t *testing.T) {
	b := newBox(t)
	var first atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			results, errs := b.Put(context.Background(), queue, []delayqueue.Job{job("a", base)}, false)
			if errs[0] == nil && !results[0].Duplicate {
				first.Add(1)
			}
		})
	}
	wait.Wait()
	require.EqualValues(t, 1, first.Load())
	require.Len(t, b.due(t, base), 1)
}

// fill takes in n jobs that are due in order before base+1000, of one bucket each fourth or so.
func (b *box) fill(t testing.TB, n int) {
	t.Helper()
	jobs := make([]delayqueue.Job, n)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("front-%03d", i), base+int64(i))
	}
	b.put(t, false, jobs...)
}

// each runs f for all items, several at once.
func each(items []Item, f func(*Item)) {
	slots := make(chan struct{}, 16)
	var wait sync.WaitGroup
	for i := range items {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			f(&items[i])
		})
	}
	wait.Wait()
}

// More of them than the pages of all buckets hold together.
const manyInFront = buckets*pageSize + 100

func TestJobsThatOthersClaimedDoNotHideTheNext(t *testing.T) {
	b := newBox(t)
	b.fill(t, manyInFront)
	b.put(t, false, job("next-0", base+1000), job("next-1", base+1000), job("next-2", base+1000), job("next-3", base+1000))
	front, err := b.Due(t.Context(), base+999, manyInFront)
	require.NoError(t, err)
	require.Len(t, front, manyInFront)
	var lost atomic.Int64
	each(front, func(item *Item) {
		if ok, err := b.Claim(context.Background(), item, time.Hour); err != nil || !ok {
			lost.Add(1)
		}
	})
	require.Zero(t, lost.Load())

	items, err := b.Due(t.Context(), base+1000, 4)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"next-0", "next-1", "next-2", "next-3"}, ids(items))
}

func TestJobsThatWereSentDoNotHideTheNext(t *testing.T) {
	b := newBox(t)
	b.fill(t, manyInFront)
	b.put(t, false, job("next", base+1000))
	var lost atomic.Int64
	each(b.due(t, base+999), func(item *Item) {
		claimed, err := b.Claim(context.Background(), item, time.Hour)
		marked, failed := b.MarkSent(context.Background(), item)
		if !claimed || !marked || err != nil || failed != nil {
			lost.Add(1)
		}
	})
	require.Zero(t, lost.Load())

	require.Equal(t, []string{"next"}, ids(b.due(t, base+1000)))
	require.EqualValues(t, 1, b.count(t), "what was sent is not counted")
	require.Len(t, b.toReturn(t, 0), manyInFront+1, "Redis is told of all that were sent")
}

func TestALimitIsKept(t *testing.T) {
	b := newBox(t)
	b.fill(t, 20)
	b.put(t, true, job("durable-0", base), job("durable-1", base))
	items, err := b.Due(t.Context(), base+1000, 7)
	require.NoError(t, err)
	require.Len(t, items, 7)
	items, err = b.Due(t.Context(), base+1000, 21)
	require.NoError(t, err)
	require.Len(t, items, 21)
}

func TestAnItemThatCannotBeReadBlocksNothing(t *testing.T) {
	b := newBox(t)
	for _, prefix := range []string{duePrefix, durablePrefix, sentPrefix} {
		for bucket := range buckets {
			_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(b.table), Item: map[string]types.AttributeValue{
				"pk": str(fmt.Sprint(prefix, bucket)), "sk": str(dueText(1) + "#broken"), "queue": str(queue), "job": str("{"), "state": str(waiting),
				"lease": num(0), "fence": num(0),
			}})
			require.NoError(t, err)
		}
	}
	b.put(t, false, job("a", base), job("b", base))
	b.put(t, true, job("c", base))
	items, err := b.Due(t.Context(), base, 3)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b", "c"}, ids(items))
	require.ElementsMatch(t, []string{"a", "b", "c"}, ids(b.toReturn(t, base)))
}
