package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestPause(t *testing.T) {
	paused := func(f *fixture) bool {
		f.t.Helper()
		stats, err := f.Stats(f.t.Context(), queue)
		require.NoError(f.t, err)
		return stats.Paused
	}

	t.Run("holds after Redis lost its data", func(t *testing.T) {
		f := newFixture(t)
		require.NoError(t, f.Pause(t.Context(), queue, time.Time{}))
		f.flush()
		require.True(t, paused(f))
		f.push(delayqueue.Job{ID: "a"})
		require.Empty(t, f.claim())
		require.NoError(t, f.Resume(t.Context(), queue))
		require.False(t, paused(f))
		require.Equal(t, []string{"a"}, f.claim())
	})

	t.Run("holds for a shard that is added later", func(t *testing.T) {
		f := newFixture(t)
		require.NoError(t, f.Pause(t.Context(), queue, time.Time{}))
		more, err := delayqueue.FromClient(f.cluster.redis.Client, delayqueue.Config{Shards: 3})
		require.NoError(t, err)
		wider := New(more, f.outbox, f.log)
		for shard := range 3 {
			allowed, err := wider.MaySend(t.Context(), queue, shard, time.Now())
			require.NoError(t, err)
			require.False(t, allowed, shard)
			claims, err := more.Claim(t.Context(), queue, shard, 1, time.Minute)
			require.NoError(t, err)
			require.True(t, claims.Paused, shard)
		}
	})

	t.Run("ends at its time", func(t *testing.T) {
		f := newFixture(t)
		require.NoError(t, f.Pause(t.Context(), queue, time.Now().Add(300*time.Millisecond)))
		require.True(t, paused(f))
		f.flush()
		f.push(delayqueue.Job{ID: "a"})
		require.Empty(t, f.claim())
		require.Eventually(t, func() bool { return len(f.claim()) == 1 }, 10*time.Second, 10*time.Millisecond)
		require.False(t, paused(f))
	})

	t.Run("without Redis: returns an error, but the pause takes effect after the outage", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a"})
		f.redisDown = true
		require.ErrorIs(t, f.Pause(t.Context(), queue, time.Time{}), delayqueue.ErrUnavailable)
		f.redisDown = false
		require.NoError(t, f.ReloadPause(t.Context(), queue), "as a dispatcher does")
		require.Empty(t, f.claim())
	})

	t.Run("without DynamoDB: returns an error and changes nothing", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a"})
		f.dynamoDown = true
		require.ErrorIs(t, f.Pause(t.Context(), queue, time.Time{}), delayqueue.ErrUnavailable)
		require.ErrorIs(t, f.Resume(t.Context(), queue), delayqueue.ErrUnavailable)
		require.False(t, paused(f))
		f.dynamoDown = false
		require.Equal(t, []string{"a"}, f.claim())
	})

	t.Run("an outage of DynamoDB does not stop jobs if Redis has the pause state of the queue", func(t *testing.T) {
		f := newFixture(t)
		f.push(delayqueue.Job{ID: "a"})
		require.NoError(t, f.ReloadPause(t.Context(), queue))
		f.dynamoDown = true
		require.Equal(t, []string{"a"}, f.claim())

		f.flush()
		_, err := f.MaySend(t.Context(), queue, 0, time.Now())
		require.ErrorIs(t, err, delayqueue.ErrUnavailable, "a Redis that lost its data has no pause state")
	})

	t.Run("an end that is out of range is refused and not stored", func(t *testing.T) {
		f := newFixture(t)
		err := f.Pause(t.Context(), queue, time.Now().Add(20*365*24*time.Hour))
		require.ErrorIs(t, err, delayqueue.ErrInvalid)
		require.False(t, paused(f))
	})
}
