package outbox

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// at is an instant in ms since the epoch.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func job(id string, runAtMS int64) delayqueue.Job {
	return delayqueue.Job{ID: id, Payload: json.RawMessage(`{"id":"` + id + `"}`), RunAt: at(runAtMS), MaxAttempts: 1,
		Backoff: delayqueue.DefaultBackoff()}
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
	items, err := b.Due(t.Context(), at(atMS), 10_000)
	require.NoError(t, err)
	return items
}

func (b *box) toReturn(t testing.TB, untilMS int64) []Item {
	t.Helper()
	items, err := b.ToReturn(t.Context(), at(untilMS), 10_000)
	require.NoError(t, err)
	return items
}

// claim claims an item, which must succeed.
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
	want.Group, want.Headers, want.Trace, want.MaxAttempts, want.AckTimeout = "g", map[string]string{"k": "v"},
		"00-trace", 3, time.Minute
	want.ExpiresAt = at(base + 9000)
	b.put(t, false, want)

	require.Empty(t, b.due(t, base+4999))
	items := b.due(t, base+5000)
	require.Len(t, items, 1)
	require.Equal(t, want, items[0].Job)
	require.Equal(t, queue, items[0].Queue)
	require.False(t, items[0].Durable)
	require.False(t, items[0].Sent)
}

func TestAPayloadIsKeptByteByByteAndNeverGrows(t *testing.T) {
	const itemLimit = 400_000 // of DynamoDB
	payloads := map[string]string{
		"blank": `{ "a" : [ 1, 2 ] }`, "escape": `"<&>\u003c\u2028\/é"`, "null": `null`, "number": `1.0e+2`,
		"large": `"` + strings.Repeat("<", delayqueue.MaxPayload-2) + `"`,
	}
	b := newBox(t)
	for id, payload := range payloads {
		j := job(id, base)
		j.Payload = json.RawMessage(payload)
		b.put(t, true, j)
		known, errs := b.Put(t.Context(), queue, []delayqueue.Job{j}, true)
		require.NoError(t, errs[0])
		require.False(t, known[0].Differs, id)
	}
	require.NoError(t, b.Change(t.Context(), queue, "large", at(base+1), nil))
	for _, item := range b.due(t, base+1) {
		require.Equal(t, payloads[item.Job.ID], string(item.Job.Payload))
		raw, err := b.get(t.Context(), str(item.pk), str(item.sk))
		require.NoError(t, err)
		size := 0
		for name, v := range raw {
			size += len(name) + len(text(v)) + 20
		}
		require.Less(t, size, itemLimit)
		delete(payloads, item.Job.ID)
	}
	require.Empty(t, payloads)
}

func TestADelayCountsFromTheClockOfWhoTookTheJobIn(t *testing.T) {
	b := newBox(t)
	j := job("a", 0)
	j.Delay = 1500 * time.Millisecond
	results, errs := b.Put(t.Context(), queue, []delayqueue.Job{j, job("past", 1)}, false)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, at(base+1500), results[0].RunAt)
	require.Equal(t, at(base), results[1].RunAt, "the past means now")
}

func TestAJobThatIsTakenInTwiceIsThereOnce(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base+1000))
	results, errs := b.Put(t.Context(), queue, []delayqueue.Job{job("a", base+9000), job("b", base+9000)}, false)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, delayqueue.Enqueued{ID: "a", State: delayqueue.Scheduled, RunAt: at(base + 1000), Duplicate: true},
		results[0], "it stands as it was")
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
