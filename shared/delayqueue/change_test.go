package delayqueue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	// asynq #568, rq #1669, bullmq #787: after a cancel and a claim had raced, the caller could not
	// tell which of the two had won.
	t.Run("after the claim: reports the state of the job", func(t *testing.T) {
		t.Parallel()
		q := newQueues(t, redistest.Single(t), Config{})
		put(t, q, "orders", simple("a", 0))
		claimSome(t, q, "orders", 1)
		_, err := q.Cancel(t.Context(), "orders", "a")
		require.ErrorIs(t, err, ErrConflict)
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		require.Equal(t, Dispatching, f.Extra["state"])
		_, err = q.Cancel(t.Context(), "orders", "unknown")
		require.ErrorIs(t, err, ErrNotFound)
	})
}
