package delayqueue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestTakeOver(t *testing.T) {
	t.Parallel()
	t.Run("increases even after Redis has lost its data", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			q := newQueues(t, r, Config{})
			old, err := q.TakeOver(t.Context())
			require.NoError(t, err)
			require.NoError(t, q.Beat(t.Context(), old))
			next, err := q.TakeOver(t.Context())
			require.NoError(t, err)
			require.Greater(t, next, old)
			require.NoError(t, r.Client.Del(t.Context(), generationKey, newestKey, HeartbeatKey).Err())
			require.NoError(t, q.Beat(t.Context(), old)) // the old dispatcher is still running
			mine, err := q.TakeOver(t.Context())
			require.NoError(t, err)
			newest, err := q.Newest(t.Context())
			require.NoError(t, err)
			require.Less(t, newest, mine, "the new dispatcher reads no generation above its own")
		})
	})
}
