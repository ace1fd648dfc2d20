package outbox

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestPut(t *testing.T) {
	t.Run("a job keeps all its fields", func(t *testing.T) {
		b := newBox(t)
		want := job("a", base+5000)
		want.Group, want.Headers, want.Trace = "g", map[string]string{"k": "v"}, "00-trace"
		want.MaxAttempts, want.AckTimeout, want.ExpiresAt = 3, time.Minute, at(base+9000)
		b.put(t, PutOptions{}, want)

		require.Empty(t, b.due(t, base+4999))
		items := b.due(t, base+5000)
		require.Len(t, items, 1)
		require.Equal(t, want, items[0].Job)
		require.Equal(t, queue, items[0].Queue)
		require.Equal(t, Waiting, items[0].State)
		require.False(t, items[0].Durable)
	})

	t.Run("a delay starts now", func(t *testing.T) {
		b := newBox(t)
		j := job("a", 0)
		j.RunAt, j.Delay = time.Time{}, 1500*time.Millisecond
		delayed, err := b.Put(t.Context(), queue, j, PutOptions{})
		require.NoError(t, err)
		require.Equal(t, at(base+1500), delayed.RunAt)
	})

	t.Run("a due time in the past means now", func(t *testing.T) {
		b := newBox(t)
		past, err := b.Put(t.Context(), queue, job("past", 1), PutOptions{})
		require.NoError(t, err)
		require.Equal(t, at(base), past.RunAt)
	})

	t.Run("a due time is rounded up to a millisecond", func(t *testing.T) {
		b := newBox(t)
		j := job("a", 0)
		j.RunAt = at(base + 1).Add(time.Nanosecond)
		rounded, err := b.Put(t.Context(), queue, j, PutOptions{})
		require.NoError(t, err)
		require.Equal(t, at(base+2), rounded.RunAt)
	})

	t.Run("dispatchers do not claim a held job before the hold ends", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true, Hold: 2 * time.Second}, job("a", base))
		require.Empty(t, b.due(t, base+1999))
		require.Empty(t, b.movable(t, base+1999))
		require.Equal(t, []string{"a"}, ids(b.due(t, base+2000)))
	})
}

func TestPutExistingID(t *testing.T) {
	t.Run("returns the existing job unchanged", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base+1000))
		require.Equal(t,
			delayqueue.Enqueued{ID: "a", State: delayqueue.Scheduled, RunAt: at(base + 1000), Duplicate: true},
			b.existing(t, job("a", base+9000)))
		require.Equal(t, []string{"a"}, ids(b.due(t, base+9000)))
	})

	t.Run("different content is reported", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{Durable: true}, job("a", base+1000))
		for name, change := range map[string]func(*delayqueue.Job){
			"payload": func(j *delayqueue.Job) { j.Payload = json.RawMessage(`2`) },
			"group":   func(j *delayqueue.Job) { j.Group = "g" },
			"headers": func(j *delayqueue.Job) { j.Headers = map[string]string{"a": "b"} },
		} {
			j := job("a", base+1000)
			change(&j)
			require.True(t, b.existing(t, j).Differs, name)
		}
	})

	t.Run("a job that is being sent is dispatching", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		b.claim(t, b.only(t))
		e := b.existing(t, job("a", base))
		require.Equal(t, delayqueue.Dispatching, e.State)
		require.Equal(t, 1, e.Attempt)
	})

	t.Run("the same ID in two queues identifies two jobs", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		other, err := b.Put(t.Context(), "other", job("a", base), PutOptions{})
		require.NoError(t, err)
		require.False(t, other.Duplicate)
		require.Len(t, b.due(t, base), 2)
		require.EqualValues(t, 1, b.count(t))
	})

	t.Run("one of many concurrent calls adds the job", func(t *testing.T) {
		b := newBox(t)
		var added atomic.Int64
		var wait sync.WaitGroup
		for range 16 {
			wait.Go(func() {
				e, err := b.Put(context.Background(), queue, job("a", base), PutOptions{})
				if err == nil && !e.Duplicate {
					added.Add(1)
				}
			})
		}
		wait.Wait()
		require.EqualValues(t, 1, added.Load())
		require.Len(t, b.due(t, base), 1)
	})

	t.Run("a pointer item that remains after an interrupted removal is replaced", func(t *testing.T) {
		b := newBox(t)
		b.put(t, PutOptions{}, job("a", base))
		_, err := b.client.DeleteItem(t.Context(),
			&dynamodb.DeleteItemInput{TableName: b.name(), Key: b.only(t).key()})
		require.NoError(t, err)
		require.Nil(t, b.find(t, "a"))

		b.put(t, PutOptions{}, job("a", base+1000))
		require.Equal(t, at(base+1000), b.find(t, "a").Job.RunAt)
	})
}

func TestPutPayload(t *testing.T) {
	const itemLimit = 400_000 // bytes; DynamoDB's limit is 400 KB
	b := newBox(t)
	for name, payload := range map[string]string{
		"blank": `{ "a" : [ 1, 2 ] }`, "escape": `"<&>\u003c\u2028\/é"`, "null": `null`, "number": `1.0e+2`,
		"large": `"` + strings.Repeat("<", delayqueue.MaxPayload-2) + `"`,
	} {
		t.Run(name+": is stored byte for byte", func(t *testing.T) {
			j := job(name, base)
			j.Payload = json.RawMessage(payload)
			b.put(t, PutOptions{Durable: true}, j)
			require.False(t, b.existing(t, j).Differs)

			item := b.find(t, name)
			require.NoError(t, b.Change(t.Context(), item, at(base+1), nil))
			require.Equal(t, payload, string(b.find(t, name).Job.Payload))
			raw, err := b.get(t.Context(), item.key())
			require.NoError(t, err)
			size := 0
			for attribute, v := range raw {
				size += len(attribute) + len(text(v)) + 20
			}
			require.Less(t, size, itemLimit)
		})
	}
}
