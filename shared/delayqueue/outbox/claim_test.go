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

func TestClaim(t *testing.T) {
	t.Run("one of many concurrent claims succeeds", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		seen := b.only(t)
		var won atomic.Int64
		var wait sync.WaitGroup
		for range 16 {
			wait.Go(func() {
				mine := *seen
				if b.ClaimToSend(context.Background(), &mine, time.Minute) == nil {
					won.Add(1)
				}
			})
		}
		wait.Wait()
		require.EqualValues(t, 1, won.Load())
	})

	t.Run("a claimed item is due again after the lease", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		item := b.only(t)
		require.False(t, item.Leased(at(base)))
		b.claim(t, item)
		require.True(t, item.Leased(at(base+59_999)))
		require.Empty(t, b.due(t, base+59_999))
		require.Empty(t, b.movable(t, 0), "a job that is being sent is not moved")
		require.Len(t, b.due(t, base+60_000), 1)
	})

	t.Run("a claim that was taken over changes nothing", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		slow := b.only(t)
		b.claim(t, slow)
		b.nowMS.Store(base + 60_000)
		next := b.only(t)
		b.claim(t, next)

		for name, late := range map[string]func(*Item) error{
			"sent":     func(i *Item) error { return b.MarkSent(t.Context(), i) },
			"released": func(i *Item) error { return b.Release(t.Context(), i, 0) },
			"claimed":  func(i *Item) error { return b.ClaimToSend(t.Context(), i, time.Hour) },
			"moved":    func(i *Item) error { return b.ClaimToMove(t.Context(), i, time.Hour) },
			"changed":  func(i *Item) error { return b.Change(t.Context(), i, at(base+1), nil) },
			"removed":  func(i *Item) error { return b.Remove(t.Context(), i) },
		} {
			mine := *slow
			require.ErrorIs(t, late(&mine), ErrClaimLost, name)
		}
		require.Empty(t, b.due(t, base+60_000), "the newer claim is still valid")
		require.NoError(t, b.MarkSent(t.Context(), next))
	})

	t.Run("ClaimToMove takes over a claim to move, but not a claim to send", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		first := b.only(t)
		require.NoError(t, b.ClaimToMove(t.Context(), first, time.Minute))
		require.Empty(t, b.due(t, base), "no sender can claim the item before the lease ends")
		second := b.find(t, "a")
		require.NoError(t, b.ClaimToMove(t.Context(), second, time.Minute))
		require.ErrorIs(t, b.Remove(t.Context(), first), ErrClaimLost)

		require.NoError(t, b.Release(t.Context(), second, 0))
		b.claim(t, b.only(t))
		require.ErrorIs(t, b.ClaimToMove(t.Context(), b.find(t, "a"), time.Minute), ErrClaimLost)
		b.nowMS.Store(base + 60_000)
		require.NoError(t, b.ClaimToMove(t.Context(), b.find(t, "a"), time.Minute), "the sender's lease has ended")
	})

	t.Run("a sent job is not claimed again", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		b.markSent(t, b.only(t))
		for _, claim := range []func(context.Context, *Item, time.Duration) error{b.ClaimToSend, b.ClaimToMove} {
			require.ErrorIs(t, claim(t.Context(), b.movable(t, 0)[0], time.Minute), ErrClaimLost)
		}
	})
}

func TestRelease(t *testing.T) {
	b := newBox(t)
	b.put(t, PutOptions{}, job("a", base))
	item := b.only(t)
	b.claim(t, item)
	require.NoError(t, b.Release(t.Context(), item, 5*time.Second))
	require.Empty(t, b.due(t, base+4999), "the item is not due before its delay has passed")
	again := b.due(t, base+5000)
	require.Len(t, again, 1)
	b.claim(t, again[0])
}

func TestMarkSent(t *testing.T) {
	for name, durable := range map[string]bool{"a job that is only in the outbox": false, "a durable job": true} {
		t.Run(name+" is not due again, and is movable in the state Sent", func(t *testing.T) {
			b := newBox(t)
			options := PutOptions{Durable: durable}
			b.put(t, options, job("a", base))
			b.nowMS.Store(base + 7)
			item := b.only(t)
			require.Equal(t, durable, item.Durable)
			b.markSent(t, item)

			require.Empty(t, b.due(t, base+time.Hour.Milliseconds()))
			require.Zero(t, b.count(t))
			items := b.movable(t, 0)
			require.Len(t, items, 1)
			require.Equal(t, Sent, items[0].State)
			require.Equal(t, at(base+7), items[0].SentAt)
			require.Equal(t, job("a", base), items[0].Job)
			again := b.existing(t, job("a", base))
			require.Equal(t, delayqueue.Dispatched, again.State, "the ID stays in use until Redis has recorded the job")
			require.Equal(t, 1, again.Attempt)

			require.NoError(t, b.Remove(t.Context(), items[0]))
			require.Empty(t, b.movable(t, 0))
			b.put(t, options, job("a", base))
		})
	}

	t.Run("a job with more attempts awaits its acknowledgement", func(t *testing.T) {
		b := newBox(t)
		j := job("a", base)
		j.MaxAttempts = 2
		b.put(t, PutOptions{}, j)
		b.markSent(t, b.only(t))
		require.Equal(t, delayqueue.AwaitingAck, b.existing(t, j).State)
	})
}

func TestChange(t *testing.T) {
	for name, c := range map[string]struct {
		runAtMS int64
		payload json.RawMessage
	}{
		"earlier":                         {base + 1000, nil},
		"later, with a new payload":       {base + 9000, json.RawMessage(`{"changed":true}`)},
		"same time, with a new payload":   {base + 5000, json.RawMessage(`null`)},
		"same time and unchanged payload": {base + 5000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.put(t, PutOptions{Durable: true}, job("a", base+5000), job("other", base+5000))
			item := b.find(t, "a")
			require.NoError(t, b.ClaimToMove(t.Context(), item, time.Minute))
			require.NoError(t, b.Change(t.Context(), item, at(c.runAtMS), c.payload))

			require.NotContains(t, ids(b.due(t, c.runAtMS-1)), "a")
			want := job("a", c.runAtMS)
			if c.payload != nil {
				want.Payload = c.payload
			}
			var there []delayqueue.Job
			for _, item := range b.due(t, base+9000) {
				require.True(t, item.Durable)
				if item.Job.ID == "a" {
					there = append(there, item.Job)
				}
			}
			require.Equal(t, []delayqueue.Job{want}, there, "exactly one item contains the job")
			require.Equal(t, delayqueue.Enqueued{ID: "a", State: delayqueue.Scheduled, RunAt: at(c.runAtMS),
				Duplicate: true, Durable: true}, b.existing(t, want))
		})
	}

	t.Run("fences a claim by a process that read the item before the change", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		before := b.only(t)
		require.NoError(t, b.Change(t.Context(), b.find(t, "a"), at(base), json.RawMessage(`2`)))
		require.ErrorIs(t, b.ClaimToSend(t.Context(), before, time.Minute), ErrClaimLost)
	})

	t.Run("does not bring back a removed item", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		before := b.find(t, "a")
		require.NoError(t, b.Remove(t.Context(), b.find(t, "a")))
		for _, ms := range []int64{base, base + 1} {
			require.ErrorIs(t, b.Change(t.Context(), before, at(ms), nil), ErrClaimLost)
		}
		require.Nil(t, b.find(t, "a"))
		require.Empty(t, b.due(t, base+1))
	})

	t.Run("does not change a job that was sent after it was read", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		before := b.find(t, "a")
		b.markSent(t, b.only(t))
		require.ErrorIs(t, b.Change(t.Context(), before, at(base+1000), nil), ErrClaimLost)
		require.Empty(t, b.due(t, base+1000))
		require.Len(t, b.movable(t, 0), 1)
	})
}

func TestRemove(t *testing.T) {
	t.Run("a second removal succeeds", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		item := b.only(t)
		require.NoError(t, b.Remove(t.Context(), item))
		require.NoError(t, b.Remove(t.Context(), item))
		b.put(t, PutOptions{}, job("a", base))
	})

	t.Run("does not remove an item that was changed after it was read", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base))
		before := b.find(t, "a")
		require.NoError(t, b.Change(t.Context(), b.find(t, "a"), at(base+1), nil))
		require.ErrorIs(t, b.Remove(t.Context(), before), ErrClaimLost)
		require.NotNil(t, b.find(t, "a"))
	})
}

func TestRemoveID(t *testing.T) {
	b := newBox(t)
	b.put(t, PutOptions{Durable: true}, job("a", base), job("b", base))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"), "a second removal succeeds")
	require.Equal(t, []string{"b"}, ids(b.due(t, base)))

	b.put(t, PutOptions{Durable: true}, job("a", base))
	item := b.find(t, "a")
	b.claim(t, item)
	require.NoError(t, b.Change(t.Context(), item, at(base+1000), nil))
	require.NoError(t, b.RemoveID(t.Context(), queue, "a"), "RemoveID finds the item after Change has changed its key")
	require.Equal(t, []string{"b"}, ids(b.due(t, base+1000)))
}

func TestDynamoDBUnavailable(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close()) // no server listens at the endpoint now
	o := New(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
	}), "table")
	item := Item{Queue: queue, Job: job("a", base), State: Waiting}
	ctx := t.Context()

	for name, err := range map[string]error{
		"Put":         second(o.Put(ctx, queue, job("a", base), PutOptions{})),
		"Find":        second(o.Find(ctx, queue, "a")),
		"Due":         second(o.Due(ctx, nil, 1)),
		"Movable":     second(o.Movable(ctx, at(base), 1)),
		"Count":       second(o.Count(ctx, queue)),
		"ClaimToSend": o.ClaimToSend(ctx, &item, time.Second),
		"ClaimToMove": o.ClaimToMove(ctx, &item, time.Second),
		"Release":     o.Release(ctx, &item, 0),
		"MarkSent":    o.MarkSent(ctx, &item),
		"Change":      o.Change(ctx, &item, at(base), nil),
		"Remove":      o.Remove(ctx, &item),
		"RemoveID":    o.RemoveID(ctx, queue, "a"),
		"SetPause":    o.SetPause(ctx, queue, at(base)),
		"ClearPause":  o.ClearPause(ctx, queue),
		"Pause":       second(o.Pause(ctx, queue)),
		"Pauses":      second(o.Pauses(ctx)),
	} {
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), name)
	}
}

func second[T any](_ T, err error) error { return err }
