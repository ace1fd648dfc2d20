package delayqueue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestShardCount(t *testing.T) {
	t.Parallel()
	t.Run("a change strands and duplicates no job", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			queue := redistest.Name("shards")
			before := newQueues(t, r, Config{Shards: 3})
			require.NoError(t, before.Register(t.Context()))
			for n := range 30 {
				put(t, before, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
			}
			for _, shards := range []int{8, 2} {
				after := newQueues(t, r, Config{Shards: shards})
				require.NoError(t, after.Register(t.Context()))
				for n := range 30 {
					e := put(t, after, queue, simple(fmt.Sprintf("job-%d", n), time.Hour))
					require.True(t, e.Duplicate, "job-%d exists with %d shards", n, shards)
					require.False(t, e.Differs)
				}
				id := fmt.Sprintf("job-%d", shards)
				_, err := after.Reschedule(context.Background(), queue, id, Change{Delay: new(time.Duration)})
				require.NoError(t, err)
				var claimed []Claimed
				require.Eventually(t, func() bool {
					claimed = append(claimed, claimAll(t, after, queue)...)
					return len(claimed) == 1
				}, 5*time.Second, time.Millisecond)
				require.Equal(t, id, claimed[0].ID)
			}
		})
	})

	t.Run("a pause applies to shards that are added later", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		before := newQueues(t, r, Config{Shards: 1})
		require.NoError(t, before.Pause(t.Context(), "orders", time.Time{}))
		after := newQueues(t, r, Config{Shards: 8})
		require.NoError(t, after.Register(t.Context()))
		for n := range 40 {
			put(t, after, "orders", simple(fmt.Sprintf("job-%d", n), 0))
		}
		require.Eventually(t, func() bool {
			s, err := after.Stats(t.Context(), "orders")
			return err == nil && s.Due == 40
		}, 5*time.Second, time.Millisecond)
		require.Empty(t, claimAll(t, after, "orders"))
		require.NoError(t, after.Resume(t.Context(), "orders"))
		require.Len(t, claimAll(t, after, "orders"), 40)
	})

	t.Run("a job that the outbox sent is recorded in the shard where it exists", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		before := newQueues(t, r, Config{Shards: 3})
		for n := range 20 {
			put(t, before, "orders", simple(fmt.Sprintf("job-%d", n), 0))
		}
		after := newQueues(t, r, Config{Shards: 8})
		require.NoError(t, after.Register(t.Context()))
		for n := range 20 {
			j := simple(fmt.Sprintf("job-%d", n), 0)
			j.RunAt = time.Now()
			require.NoError(t, after.RecordSent(t.Context(), "orders", j, time.Now()))
		}
		require.Empty(t, claimAll(t, after, "orders"))
		for n := range 20 {
			require.Equal(t, Dispatched, state(t, after, "orders", fmt.Sprintf("job-%d", n)))
		}
	})
}
