package delayqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

func TestNack(t *testing.T) {
	t.Parallel()
	// laravel-google-cloud-tasks #104: deduplication dropped a job's own retry.
	t.Run("the dedup window of a job does not stop its retries", func(t *testing.T) {
		t.Parallel()
		q := newClocked(t, redistest.Single(t), Config{Shards: 1, DedupWindow: time.Hour})
		j := simple("a", 0)
		j.MaxAttempts, j.AckTimeout = 3, time.Second
		put(t, q.Queues, "orders", j)
		for attempt := 1; attempt <= 3; attempt++ {
			claimed := claimAll(t, q.Queues, "orders")
			require.Len(t, claimed, 1)
			require.Equal(t, attempt, claimed[0].Attempt)
			_, err := q.Accept(t.Context(), "orders", 0, claimed)
			require.NoError(t, err)
			_, err = q.Nack(t.Context(), "orders", "a", attempt, NackOptions{Reason: "no", Delay: new(time.Duration)})
			require.NoError(t, err)
		}
		require.Equal(t, Dead, state(t, q.Queues, "orders", "a"))
	})
}
