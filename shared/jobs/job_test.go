package jobs

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestGet(t *testing.T) {
	t.Run("a job that is only in the outbox", func(t *testing.T) {
		f := newFixture(t)
		job := delayqueue.Job{ID: "a", Delay: far, MaxAttempts: 3, Headers: map[string]string{"k": "v"}}
		f.pushToOutbox(job)
		info, err := f.Get(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, delayqueue.Scheduled, info.State)
		require.Equal(t, 3, info.MaxAttempts)
		require.JSONEq(t, `1`, string(info.Payload))
		require.Equal(t, job.Headers, info.Headers)

		require.Equal(t, 1, f.move())
		again, err := f.Get(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, info, again, "the answer does not depend on the store")
	})

	t.Run("a job that the outbox sent", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a", MaxAttempts: 2})
		require.Equal(t, []string{"a"}, f.sendDue(true))
		info, err := f.Get(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, delayqueue.AwaitingAck, info.State)
		require.Equal(t, 1, info.Attempt)
		require.False(t, info.DispatchedAt.IsZero())
	})

	t.Run("an unknown job: not found only if both stores were read", func(t *testing.T) {
		f := newFixture(t)
		_, err := f.Get(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrNotFound)
		f.dynamoDown = true
		_, err = f.Get(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrUnavailable)
		f.dynamoDown, f.redisDown = false, true
		_, err = f.Get(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrUnavailable)
	})
}

func TestCancel(t *testing.T) {
	t.Run("a job of the outbox is not moved and not sent", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a"})
		info, err := f.Cancel(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, delayqueue.Canceled, info.State)
		require.False(t, f.inOutbox("a"))
		require.Zero(t, f.move())
		require.Empty(t, f.claim())
		require.Empty(t, f.sendDue(true))
		require.Equal(t, delayqueue.Canceled, f.state("a"), "Redis has recorded the cancellation")

		_, err = f.Cancel(t.Context(), queue, "a")
		require.NoError(t, err, "canceling it again succeeds")
		r := f.Enqueue(t.Context(), queue, []delayqueue.Job{{ID: "a", Payload: json.RawMessage(`1`)}})[0]
		require.Equal(t, delayqueue.Canceled, r.Enqueued.State, "its ID is in use until the dedup window ends")
	})

	t.Run("a durable job after Redis lost its data", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Delay: far, Durable: true})
		f.flush()
		info, err := f.Cancel(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, delayqueue.Canceled, info.State)
		require.False(t, f.inOutbox("a"))
	})

	t.Run("a job that the outbox is sending or sent is a conflict", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a"})
		item, err := f.outbox.Find(t.Context(), queue, "a")
		require.NoError(t, err)
		require.NoError(t, f.outbox.ClaimToSend(t.Context(), item, time.Minute))
		_, err = f.Cancel(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrConflict)
		require.Equal(t, delayqueue.Dispatching, f.state("a"))

		require.NoError(t, f.outbox.MarkSent(t.Context(), item))
		_, err = f.Cancel(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrConflict)
		require.Equal(t, delayqueue.Dispatched, f.state("a"))
		require.False(t, f.inOutbox("a"), "Redis has recorded that the job was sent")
	})

	t.Run("a sent job with a copy in Redis is a conflict", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Durable: true})
		require.Equal(t, []string{"a"}, f.sendDue(true))
		_, err := f.Cancel(t.Context(), queue, "a")
		require.ErrorIs(t, err, delayqueue.ErrConflict)
		require.Empty(t, f.claim(), "the copy is not sent")
	})

	t.Run("while a store is unavailable, nothing changes", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Delay: far, Durable: true})
		for _, down := range []*bool{&f.redisDown, &f.dynamoDown} {
			*down = true
			_, err := f.Cancel(t.Context(), queue, "a")
			require.ErrorIs(t, err, delayqueue.ErrUnavailable)
			*down = false
			require.Equal(t, delayqueue.Scheduled, f.state("a"))
			require.True(t, f.inOutbox("a"))
		}
	})
}

func TestReschedule(t *testing.T) {
	change := func(f *fixture, c delayqueue.Change) (delayqueue.Info, error) {
		return f.Reschedule(f.t.Context(), queue, "a", c)
	}

	t.Run("a job of the outbox moves to Redis with its new time and payload", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a", Delay: far})
		info, err := change(f, delayqueue.Change{Delay: new(time.Duration), Payload: json.RawMessage(`2`)})
		require.NoError(t, err)
		require.Equal(t, delayqueue.Scheduled, info.State)
		require.JSONEq(t, `2`, string(info.Payload))
		require.False(t, f.inOutbox("a"))
		require.Equal(t, []string{"a"}, f.claim())
	})

	t.Run("a durable job after Redis lost its data changes in both stores", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Delay: far, Durable: true})
		f.flush()
		info, err := change(f, delayqueue.Change{Delay: new(2 * far), Payload: json.RawMessage(`2`)})
		require.NoError(t, err)
		item, err := f.outbox.Find(t.Context(), queue, "a")
		require.NoError(t, err)
		require.Equal(t, info.RunAt, item.Job.RunAt)
		require.JSONEq(t, `2`, string(item.Job.Payload))
	})

	t.Run("an invalid change does not move the job", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a"})
		_, err := change(f, delayqueue.Change{})
		require.ErrorIs(t, err, delayqueue.ErrInvalid)
		require.True(t, f.inOutbox("a"))
		require.Empty(t, f.claim())
	})
}

func TestAck(t *testing.T) {
	ack := func(f *fixture) (delayqueue.Info, error) { return f.Ack(f.t.Context(), queue, "a", 1) }

	for name, durable := range map[string]bool{"without a copy in Redis": false, "with a copy in Redis": true} {
		t.Run("a job that the outbox sent, "+name, func(t *testing.T) {
			f := newFixture(t)
			job := delayqueue.Job{ID: "a", MaxAttempts: 2, Durable: durable}
			if durable {
				f.push(job)
			} else {
				f.pushToOutbox(job)
			}
			require.Equal(t, []string{"a"}, f.sendDue(true))
			info, err := ack(f)
			require.NoError(t, err)
			require.Equal(t, delayqueue.Succeeded, info.State)
			require.Zero(t, f.move())
			require.Equal(t, delayqueue.Succeeded, f.state("a"))
		})
	}

	t.Run("a job of the outbox that was not sent is a conflict", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a", MaxAttempts: 2})
		_, err := ack(f)
		require.ErrorIs(t, err, delayqueue.ErrConflict)
	})

	t.Run("an unknown job: not found only if both stores were read", func(t *testing.T) {
		f := newFixture(t)
		_, err := ack(f)
		require.ErrorIs(t, err, delayqueue.ErrNotFound)
		f.dynamoDown = true
		_, err = ack(f)
		require.ErrorIs(t, err, delayqueue.ErrUnavailable)
	})

	t.Run("a job that Redis sent needs no DynamoDB", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", MaxAttempts: 2})
		claims, err := f.queues.Claim(t.Context(), queue, 0, 1, time.Minute)
		require.NoError(t, err)
		_, err = f.queues.Accept(t.Context(), queue, 0, claims.Jobs)
		require.NoError(t, err)
		f.dynamoDown = true
		info, err := f.Nack(t.Context(), queue, "a", 1, delayqueue.NackOptions{})
		require.NoError(t, err)
		require.Equal(t, delayqueue.Scheduled, info.State)
		_, err = f.Nack(t.Context(), queue, "a", 2, delayqueue.NackOptions{})
		require.ErrorIs(t, err, delayqueue.ErrConflict)
	})
}
