package outbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// fill adds n jobs in the bucket of the job "next". The first job is due at the time base, and each
// further job 1 ms later.
func (b *box) fill(t testing.TB, n int) {
	t.Helper()
	var jobs []delayqueue.Job
	for i := 0; len(jobs) < n; i++ {
		if id := fmt.Sprintf("front-%d", i); bucketOf(id) == bucketOf("next") {
			jobs = append(jobs, job(id, base+int64(len(jobs))))
		}
	}
	requireEach(t, jobs, func(j delayqueue.Job) error {
		_, err := b.Put(context.Background(), queue, j, PutOptions{})
		return err
	})
}

// requireEach calls do for all items concurrently and requires that every call succeeds.
func requireEach[T any](t testing.TB, items []T, do func(T) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, item := range items {
		group.Go(func() error { return do(item) })
	}
	require.NoError(t, group.Wait())
}

// manyInFront is a number of items that fills more than two pages.
const manyInFront = 2*pageSize + 50

func TestDue(t *testing.T) {
	t.Run("claimed jobs do not hide later jobs", func(t *testing.T) {
		b := newBox(t)
		b.fill(t, manyInFront)
		b.put(t, PutOptions{}, job("next", base+1000))
		front := b.due(t, base+999)
		require.Len(t, front, manyInFront)
		requireEach(t, front, func(item *Item) error {
			return b.ClaimToSend(context.Background(), item, time.Hour)
		})
		b.nowMS.Store(base + 1000)
		items, err := b.Due(t.Context(), nil, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"next"}, ids(items))
	})

	t.Run("sent jobs do not hide later jobs", func(t *testing.T) {
		b := newBox(t)
		b.fill(t, manyInFront)
		b.put(t, PutOptions{}, job("next", base+1000))
		requireEach(t, b.due(t, base+999), func(item *Item) error {
			if err := b.ClaimToSend(context.Background(), item, time.Hour); err != nil {
				return err
			}
			return b.MarkSent(context.Background(), item)
		})
		require.Equal(t, []string{"next"}, ids(b.due(t, base+1000)))
		require.EqualValues(t, 1, b.count(t), "sent jobs are not counted")
		require.Len(t, b.movable(t, 0), manyInFront+1, "Redis must record all sent jobs")
	})

	t.Run("jobs of skipped queues do not hide later jobs", func(t *testing.T) {
		b := newBox(t)
		b.fill(t, manyInFront)
		for _, name := range []string{"paused", "other"} {
			_, err := b.Put(t.Context(), name, job("next", base), PutOptions{})
			require.NoError(t, err)
		}
		b.nowMS.Store(base + 1000)
		items, err := b.Due(t.Context(), []string{queue, "paused"}, 10)
		require.NoError(t, err)
		require.Len(t, items, 1)
		require.Equal(t, "other", items[0].Queue)
	})

	t.Run("returns at most limit jobs", func(t *testing.T) {
		b := newBox(t)
		b.fill(t, 20)
		b.put(t, PutOptions{Durable: true}, job("durable-0", base), job("durable-1", base))
		b.nowMS.Store(base + 1000)
		for _, limit := range []int{7, 21} {
			items, err := b.Due(t.Context(), nil, limit)
			require.NoError(t, err)
			require.Len(t, items, limit)
		}
	})

	t.Run("items that cannot be decoded are skipped", func(t *testing.T) {
		b := newBox(t)
		for _, prefix := range []string{plainPrefix, durablePrefix, sentPrefix} {
			for bucket := range buckets {
				_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: b.name(), Item: map[string]types.AttributeValue{
						"pk": str(fmt.Sprint(prefix, bucket)), "sk": str(dueText(at(1)) + "#broken"),
						"queue": str(queue), "job": str("{"), "state": str(string(Waiting)), "lease": num(0),
						"fence": num(0),
					},
				})
				require.NoError(t, err)
			}
		}
		b.put(t, PutOptions{}, job("a", base), job("b", base))
		b.put(t, PutOptions{Durable: true}, job("c", base))
		items, err := b.Due(t.Context(), nil, 3)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a", "b", "c"}, ids(items))
		require.ElementsMatch(t, []string{"a", "b", "c"}, ids(b.movable(t, base)))
	})
}

func TestMovable(t *testing.T) {
	b := newBox(t)
	b.put(t, PutOptions{Durable: true}, job("soon", base+1000), job("later", base+9000))
	b.put(t, PutOptions{}, job("only here", base+9_000_000))
	require.ElementsMatch(t, []string{"soon", "only here"}, ids(b.movable(t, base+1000)),
		"durable jobs are movable only shortly before they are due")
}

func TestFind(t *testing.T) {
	t.Run("returns nil for a job that does not exist", func(t *testing.T) {
		require.Nil(t, newBox(t).find(t, "a"))
	})

	t.Run("finds a job in every state", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		item := b.find(t, "a")
		require.Equal(t, Waiting, item.State)
		require.True(t, item.Durable)
		require.NoError(t, b.Change(t.Context(), item, at(base+5), nil))
		require.Equal(t, at(base+5), b.find(t, "a").Job.RunAt)

		item = b.find(t, "a")
		b.claim(t, item)
		require.True(t, b.find(t, "a").BeingSent(at(base)))
		require.NoError(t, b.MarkSent(t.Context(), item))
		require.Equal(t, Sent, b.find(t, "a").State)
		require.NoError(t, b.Remove(t.Context(), item))
		require.Nil(t, b.find(t, "a"))
	})

	t.Run("a job whose item moves to different keys concurrently is always found", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		stop := make(chan struct{})
		var refiled sync.WaitGroup
		var failed atomic.Int64
		refiled.Go(func() {
			item, err := b.Find(context.Background(), queue, "a")
			for n := int64(1); err == nil; n++ {
				select {
				case <-stop:
					return
				default:
					err = b.Change(context.Background(), item, at(base+n), nil)
				}
			}
			failed.Add(1)
		})
		for range 200 {
			item, err := b.Find(t.Context(), queue, "a")
			if err == nil { // after too many changes during one call, Find returns store_unavailable
				require.NotNil(t, item)
			}
		}
		close(stop)
		refiled.Wait()
		require.Zero(t, failed.Load())
	})
}

func TestCount(t *testing.T) {
	t.Run("counts the jobs of the queue that are only in the outbox", func(t *testing.T) {
		b := newBox(t)
		require.Zero(t, b.count(t))
		b.put(t, PutOptions{}, job("a", base), job("b", base+9_000_000))
		b.put(t, PutOptions{Durable: true}, job("durable", base))
		_, err := b.Put(t.Context(), "other", job("c", base), PutOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 2, b.count(t))
		n, err := b.Count(t.Context(), "none")
		require.NoError(t, err)
		require.Zero(t, n)
	})

	t.Run("counts more than one page of items", func(t *testing.T) {
		b := newBox(t)
		const n = countPageSize + 50
		b.fill(t, n)
		require.EqualValues(t, n, b.count(t))
	})
}
