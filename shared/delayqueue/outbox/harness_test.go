package outbox

import (
	"encoding/json"
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
	base  = int64(1_750_000_000_000) // milliseconds since the epoch
	many  = 10_000                   // more items than any test has
)

// box is an Outbox with a clock that the test sets.
type box struct {
	*Outbox

	nowMS atomic.Int64
}

func newBox(t testing.TB) *box {
	t.Helper()
	local := awstest.Start(t)
	b := &box{Outbox: New(local.DynamoDB, local.CreateTable(t, TableInput(redistest.Name("outbox"))))}
	b.nowMS.Store(base)
	b.now = func() time.Time { return at(b.nowMS.Load()) }
	return b
}

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func job(id string, runAtMS int64) delayqueue.Job {
	return delayqueue.Job{
		ID: id, Payload: json.RawMessage(`{"id":"` + id + `"}`), RunAt: at(runAtMS), MaxAttempts: 1,
		Backoff: delayqueue.DefaultBackoff(),
	}
}

// put adds jobs and requires that their IDs are new.
func (b *box) put(t testing.TB, options PutOptions, jobs ...delayqueue.Job) {
	t.Helper()
	for _, j := range jobs {
		added, err := b.Put(t.Context(), queue, j, options)
		require.NoError(t, err)
		require.False(t, added.Duplicate)
	}
}

// existing puts a job whose ID already exists, and returns the description of the existing job.
func (b *box) existing(t testing.TB, j delayqueue.Job) delayqueue.Enqueued {
	t.Helper()
	e, err := b.Put(t.Context(), queue, j, PutOptions{})
	require.NoError(t, err)
	require.True(t, e.Duplicate)
	return e
}

// due sets the clock to nowMS and reads all due items.
func (b *box) due(t testing.TB, nowMS int64) []*Item {
	t.Helper()
	b.nowMS.Store(nowMS)
	items, err := b.Due(t.Context(), nil, many)
	require.NoError(t, err)
	return items
}

// b.only() requires that exactly one item is due, and returns this item.
func (b *box) only(t testing.TB) *Item {
	t.Helper()
	items := b.due(t, b.nowMS.Load())
	require.Len(t, items, 1)
	return items[0]
}

func (b *box) movable(t testing.TB, durableDueByMS int64) []*Item {
	t.Helper()
	items, err := b.Movable(t.Context(), at(durableDueByMS), many)
	require.NoError(t, err)
	return items
}

func (b *box) find(t testing.TB, id string) *Item {
	t.Helper()
	item, err := b.Find(t.Context(), queue, id)
	require.NoError(t, err)
	return item
}

func (b *box) claim(t testing.TB, item *Item) {
	t.Helper()
	require.NoError(t, b.ClaimToSend(t.Context(), item, time.Minute))
}

func (b *box) markSent(t testing.TB, item *Item) {
	t.Helper()
	b.claim(t, item)
	require.NoError(t, b.MarkSent(t.Context(), item))
}

func (b *box) count(t testing.TB) int64 {
	t.Helper()
	n, err := b.Count(t.Context(), queue)
	require.NoError(t, err)
	return n
}

func ids(items []*Item) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = items[i].Job.ID
	}
	return out
}
