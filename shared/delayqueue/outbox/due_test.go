package outbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

// fill takes in n jobs that are due in order before base+1000, all in the bucket of "next".
func (b *box) fill(t testing.TB, n int) {
	t.Helper()
	var jobs []delayqueue.Job
	for i := 0; len(jobs) < n; i++ {
		if id := fmt.Sprintf("front-%d", i); bucketOf(id) == bucketOf("next") {
			jobs = append(jobs, job(id, base+int64(len(jobs))))
		}
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

// manyInFront are more than two pages.
const manyInFront = 2*pageSize + 50

func TestJobsThatOthersClaimedDoNotHideTheNext(t *testing.T) {
	b := newBox(t)
	b.fill(t, manyInFront)
	b.put(t, false, job("next", base+1000))
	front, err := b.Due(t.Context(), at(base+999), manyInFront)
	require.NoError(t, err)
	require.Len(t, front, manyInFront)
	var lost atomic.Int64
	each(front, func(item *Item) {
		if ok, err := b.Claim(context.Background(), item, time.Hour); err != nil || !ok {
			lost.Add(1)
		}
	})
	require.Zero(t, lost.Load())

	items, err := b.Due(t.Context(), at(base+1000), 1)
	require.NoError(t, err)
	require.Equal(t, []string{"next"}, ids(items))
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

func TestTheCountGoesOnOverPages(t *testing.T) {
	b := newBox(t)
	const many = countPageSize + 50
	b.fill(t, many)
	require.EqualValues(t, many, b.count(t))
}

func TestALimitIsKept(t *testing.T) {
	b := newBox(t)
	b.fill(t, 20)
	b.put(t, true, job("durable-0", base), job("durable-1", base))
	items, err := b.Due(t.Context(), at(base+1000), 7)
	require.NoError(t, err)
	require.Len(t, items, 7)
	items, err = b.Due(t.Context(), at(base+1000), 21)
	require.NoError(t, err)
	require.Len(t, items, 21)
}

func TestAnItemThatCannotBeReadBlocksNothing(t *testing.T) {
	b := newBox(t)
	for _, prefix := range []string{duePrefix, durablePrefix, sentPrefix} {
		for bucket := range buckets {
			_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(b.table),
				Item: map[string]types.AttributeValue{
					"pk": str(fmt.Sprint(prefix, bucket)), "sk": str(dueText(1) + "#broken"), "queue": str(queue),
					"job": str("{"), "state": str(waiting),
					"lease": num(0), "fence": num(0),
				}})
			require.NoError(t, err)
		}
	}
	b.put(t, false, job("a", base), job("b", base))
	b.put(t, true, job("c", base))
	items, err := b.Due(t.Context(), at(base), 3)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b", "c"}, ids(items))
	require.ElementsMatch(t, []string{"a", "b", "c"}, ids(b.toReturn(t, base)))
}
