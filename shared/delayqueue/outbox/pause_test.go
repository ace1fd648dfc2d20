package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestPause(t *testing.T) {
	b := newBox(t)
	pause := func() delayqueue.Pause {
		t.Helper()
		one, err := b.Pause(t.Context(), queue)
		require.NoError(t, err)
		all, err := b.Pauses(t.Context())
		require.NoError(t, err)
		require.Equal(t, one, all[queue])
		return one
	}
	require.Equal(t, delayqueue.Pause{}, pause())

	require.NoError(t, b.SetPause(t.Context(), queue, time.Time{}))
	require.NoError(t, b.SetPause(t.Context(), "other", time.Time{}))
	require.Equal(t, delayqueue.Pause{Paused: true}, pause())
	require.NoError(t, b.ClearPause(t.Context(), queue))
	require.NoError(t, b.ClearPause(t.Context(), queue), "a second ClearPause succeeds")
	require.Equal(t, delayqueue.Pause{}, pause())

	require.NoError(t, b.SetPause(t.Context(), queue, at(base+1000)))
	require.Equal(t, delayqueue.Pause{Paused: true, Until: at(base + 1000)}, pause())
	b.nowMS.Store(base + 1000)
	require.Equal(t, delayqueue.Pause{}, pause(), "a pause ends at its Until")
}
