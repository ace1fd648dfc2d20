package outbox

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

// only is the one item that is due.
func (b *box) only(t testing.TB) Item {
	t.Helper()
	items := b.due(t, b.nowMS.Load())
	require.Len(t, items, 1)
	return items[0]
}

func TestOfManyWhoClaimAtOnceOneWins(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	seen := b.only(t)
	var won atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			mine := seen
			if ok, err := b.Claim(context.Background(), &mine, time.Minute); err == nil && ok {
				won.Add(1)
			}
		})
	}
	wait.Wait()
	require.EqualValues(t, 1, won.Load())
}

func TestAClaimedItemIsDueAgainOnlyWhenTheLeaseHasLapsed(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	item := b.only(t)
	require.True(t, item.Free(time.UnixMilli(base)))
	b.claim(t, &item)
	require.False(t, item.Free(time.UnixMilli(base+59_999)))
	require.Empty(t, b.due(t, base+59_999))
	require.Empty(t, b.toReturn(t, 0), "what somebody is sending is not returned")
	require.Len(t, b.due(t, base+60_000), 1)
}

func TestAClaimThatSomebodyTookOverChangesNothingAnyMore(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	slow := b.only(t)
	b.claim(t, &slow)
	b.nowMS.Store(base + 60_000)
	next := b.only(t)
	b.claim(t, &next)

	for name, late := range map[string]func(*Item) (bool, error){
		"sent":     func(i *Item) (bool, error) { return b.MarkSent(t.Context(), i) },
		"returned": func(i *Item) (bool, error) { return b.Return(t.Context(), i, 0) },
		"claimed":  func(i *Item) (bool, error) { return b.Claim(t.Context(), i, time.Hour) },
	} {
		mine := slow
		ok, err := late(&mine)
		require.NoError(t, err, name)
		require.False(t, ok, name)
	}
	require.Empty(t, b.due(t, base+60_000), "the next one's claim still holds")
	ok, err := b.MarkSent(t.Context(), &next)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestASentJobIsNotDueAndIsReturnedAsSent(t *testing.T) {
	for name, durable := range map[string]bool{"taken in without redis": false, "durable": true} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.put(t, durable, job("a", base))
			b.nowMS.Store(base + 7)
			item := b.only(t)
			require.Equal(t, durable, item.Durable)
			b.markSent(t, &item)

			require.Empty(t, b.due(t, base+int64(time.Hour/time.Millisecond)))
			require.Zero(t, b.count(t))
			found := b.toReturn(t, 0)
			require.Len(t, found, 1)
			require.True(t, found[0].Sent)
			require.Equal(t, at(base+7), found[0].SentAt)
			require.Equal(t, job("a", base), found[0].Job)
			again, errs := b.Put(t.Context(), queue, []delayqueue.Job{job("a", base)}, durable)
			require.NoError(t, errs[0])
			require.True(t, again[0].Duplicate, "its id is not free before Redis knows of it")
			require.Equal(t, delayqueue.Dispatched, again[0].State)
			require.Equal(t, 1, again[0].Attempt)

			require.NoError(t, b.Remove(t.Context(), &found[0]))
			require.Empty(t, b.toReturn(t, 0))
			b.put(t, durable, job("a", base))
		})
	}
}

func TestASentJobIsNotClaimedAgain(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	item := b.only(t)
	b.markSent(t, &item)
	ok, err := b.Claim(t.Context(), &b.toReturn(t, 0)[0], time.Minute)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestWhatIsReturnedWaitsForItsDelay(t *testing.T) {
	b := newBox(t)
	b.put(t, false, job("a", base))
	item := b.only(t)
	b.claim(t, &item)
	ok, err := b.Return(t.Context(), &item, 5*time.Second)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, b.due(t, base+4999))
	again := b.due(t, base+5000)
	require.Len(t, again, 1)
	b.claim(t, &again[0])
}

func TestDurableJobsAreReturnedOnlyShortlyBeforeTheirTime(t *testing.T) {
	b := newBox(t)
	b.put(t, true, job("soon", base+1000), job("later", base+9000))
	b.put(t, false, job("homeless", base+9_000_000))
	require.ElementsMatch(t, []string{"soon", "homeless"}, ids(b.toReturn(t, base+1000)))
}

func TestAChangedDurableJobIsDueAtItsNewTimeWithItsNewPayload(t *testing.T) {
	for name, c := range map[string]struct {
		runAtMS int64
		payload json.RawMessage
	}{
		"earlier":                       {base + 1000, nil},
		"later, with another payload":   {base + 9000, json.RawMessage(`{"changed":true}`)},
		"same time and another payload": {base + 5000, json.RawMessage(`null`)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.put(t, true, job("a", base+5000), job("other", base+5000))
			require.NoError(t, b.Change(t.Context(), queue, "a", at(c.runAtMS), c.payload))

			require.NotContains(t, ids(b.due(t, c.runAtMS-1)), "a")
			want := job("a", c.runAtMS)
			if c.payload != nil {
				want.Payload = c.payload
			}
			var found []delayqueue.Job
			for _, item := range b.due(t, base+9000) {
				require.True(t, item.Durable)
				if item.Job.ID == "a" {
					found = append(found, item.Job)
				}
			}
			require.Equal(t, []delayqueue.Job{want}, found, "it is in one place")

			known, errs := b.Put(t.Context(), queue, []delayqueue.Job{want}, true)
			require.NoError(t, errs[0])
			require.Equal(t, delayqueue.Enqueued{ID: "a", State: delayqueue.Scheduled, RunAt: at(c.runAtMS),
				Duplicate: true, Durable: true}, known[0])
		})
	}
}

func TestAChangeFencesAClaimThatSawTheOldTime(t *testing.T) {
	b := newBox(t)
	b.put(t, true, job("a", base))
	seen := b.only(t)
	require.NoError(t, b.Change(t.Context(), queue, "a", at(base), json.RawMessage(`2`)))
	ok, err := b.Claim(t.Context(), &seen, time.Minute)
	require.NoError(t, err)
	require.False(t, ok, "who read it before would send the old payload")
}

func TestAChangeOfWhatIsNotHereIsNothing(t *testing.T) {
	b := newBox(t)
	require.NoError(t, b.Change(t.Context(), queue, "unknown", at(base), nil))
	require.Empty(t, b.due(t, base))
}

func TestAChangedJobThatWasSentMeanwhileIsNotSentAgain(t *testing.T) {
	b := newBox(t)
	b.put(t, true, job("a", base))
	item := b.only(t)
	b.markSent(t, &item)
	err := b.Change(t.Context(), queue, "a", at(base+1000), nil)
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err),
		"the caller asks again, and Redis knows by then that it was sent")
	require.Empty(t, b.due(t, base+1000))
	require.Len(t, b.toReturn(t, 0), 1)
}

func TestARemovedJobIsGoneAndItsIDIsFree(t *testing.T) {
	b := newBox(t)
	b.put(t, true, job("a", base), job("b", base))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"), "twice is no error")
	require.Equal(t, []string{"b"}, ids(b.due(t, base)))
	b.put(t, true, job("a", base))
	require.NoError(t, b.Change(t.Context(), queue, "a", at(base+1000), nil))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"), "also where a change has put it")
	require.Equal(t, []string{"b"}, ids(b.due(t, base+1000)))
}

func TestTheCountIsOfJobsThatWaitForRedisInThatQueue(t *testing.T) {
	b := newBox(t)
	require.Zero(t, b.count(t))
	b.put(t, false, job("a", base), job("b", base+9_000_000))
	b.put(t, true, job("durable", base)) // Redis has it, too, and counts it
	_, errs := b.Put(t.Context(), "other", []delayqueue.Job{job("c", base)}, false)
	require.NoError(t, errs[0])
	require.EqualValues(t, 2, b.count(t))
	n, err := b.Count(t.Context(), "none")
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestEveryCallSaysThatDynamoDBIsAway(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close()) // nobody listens there now
	away := New(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
	}), "table")
	item := Item{Queue: queue, Job: job("a", base)}
	_, errs := away.Put(t.Context(), queue, []delayqueue.Job{job("a", base), job("b", base)}, false)
	for name, err := range map[string]error{
		"put": errs[0], "put 2": errs[1],
		"due":       second(away.Due(t.Context(), at(base), 1)),
		"return":    second(away.Return(t.Context(), &item, 0)),
		"to return": second(away.ToReturn(t.Context(), at(base), 1)),
		"claim":     second(away.Claim(t.Context(), &item, time.Second)),
		"sent":      second(away.MarkSent(t.Context(), &item)),
		"change":    away.Change(t.Context(), queue, "a", at(base), nil),
		"remove":    away.Remove(t.Context(), &item),
		"remove id": away.RemoveID(t.Context(), queue, "a"),
		"count":     second(away.Count(t.Context(), queue)),
	} {
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), name)
	}
}

func second[T any](_ T, err error) error { return err }
