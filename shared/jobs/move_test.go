package jobs

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestMoveToRedis(t *testing.T) {
	t.Run("a durable job stays in the outbox until it is sent", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Durable: true})
		require.Equal(t, 1, f.move())
		require.True(t, f.inOutbox("a"))
		require.Zero(t, f.move(), "the item is not checked again for one minute")

		claims, err := f.queues.Claim(t.Context(), queue, 0, 1, time.Minute)
		require.NoError(t, err)
		require.Len(t, claims.Jobs, 1)
		require.True(t, f.inOutbox("a"), "SQS may still refuse the job")
		_, err = f.queues.Accept(t.Context(), queue, 0, claims.Jobs)
		require.NoError(t, err)
		f.RemoveSent(t.Context(), queue, claims.Jobs)
		require.False(t, f.inOutbox("a"))
	})

	t.Run("a durable job is restored after Redis lost its data", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Durable: true})
		f.flush()
		require.Equal(t, 1, f.move())
		require.Equal(t, []string{"a"}, f.claim())
	})

	t.Run("a sent job is recorded before Redis hands out its copy", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a", Durable: true})
		require.Equal(t, []string{"a"}, f.sendDue(true))
		f.redisDown = true
		_, err := f.MoveToRedis(t.Context(), time.Minute)
		require.ErrorIs(t, err, delayqueue.ErrUnavailable)
		f.redisDown = false
		require.Equal(t, 1, f.move())
		require.Empty(t, f.claim())
		require.Equal(t, delayqueue.Dispatched, f.state("a"))
	})
}

func TestSendDue(t *testing.T) {
	t.Run("a job that SQS refuses waits and is sent later", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "a"})
		require.Equal(t, []string{"a"}, f.sendDue(false))
		require.Empty(t, f.sendDue(true))
		require.Equal(t, delayqueue.Scheduled, f.state("a"))
	})

	t.Run("expired jobs, jobs of other queues and jobs that are not due stay", func(t *testing.T) {
		f := newFixture(t)
		f.pushToOutbox(delayqueue.Job{ID: "expired", ExpiresAt: time.Now().Add(time.Millisecond)})
		f.pushToOutbox(delayqueue.Job{ID: "later", Delay: far})
		other := delayqueue.Job{ID: "a", Payload: json.RawMessage(`1`)}
		withoutRedis(func() {
			require.NoError(t, f.Enqueue(t.Context(), "other", []delayqueue.Job{other})[0].Err)
		}, f.process)
		f.pushToOutbox(delayqueue.Job{ID: "due"})
		require.Equal(t, []string{"due"}, f.sendDue(true))
		require.True(t, f.inOutbox("expired"))
		require.True(t, f.inOutbox("later"))
	})

	t.Run("jobs of a paused queue stay", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "durable", Durable: true})
		f.pushToOutbox(delayqueue.Job{ID: "plain"})
		require.NoError(t, f.Pause(t.Context(), queue, time.Time{}))
		f.redisDown = true
		require.Empty(t, f.sendDue(true))
		f.redisDown = false
		require.NoError(t, f.Resume(t.Context(), queue))
		require.ElementsMatch(t, []string{"durable", "plain"}, f.sendDue(true))
	})
}
