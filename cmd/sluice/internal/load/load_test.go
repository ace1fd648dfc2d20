package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/cmd/sluice/internal/load"
)

func text(err error) string { return err.Error() }

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("starts calls at the rate and measures from the scheduled start", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := load.Run(t.Context(), load.Plan{Rate: 10, Concurrency: 5, Duration: 10 * time.Second},
				func(context.Context, int) error {
					<-time.After(50 * time.Millisecond)
					return nil
				}, text)
			require.InDelta(t, 100, r.Calls, 1)
			require.InDelta(t, 50, r.P50, 1)
			require.InDelta(t, 50, r.Max, 1)
		})
	})

	t.Run("includes a stall in the latencies", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := load.Run(t.Context(), load.Plan{Rate: 10, Concurrency: 1, Duration: 2 * time.Second},
				func(_ context.Context, n int) error {
					if n == 0 {
						<-time.After(time.Second)
					}
					return nil
				}, text)
			require.InDelta(t, 1000, r.Max, 1)
			require.Greater(t, r.P90, 100.0, "the calls that waited for the slow call are slow too")
		})
	})

	t.Run("ends after Count calls", func(t *testing.T) {
		t.Parallel()
		var most, now atomic.Int32
		r := load.Run(t.Context(), load.Plan{Concurrency: 3, Duration: time.Minute, Count: 50},
			func(context.Context, int) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-time.After(time.Millisecond)
				now.Add(-1)
				return nil
			}, text)
		require.Equal(t, 50, r.Calls)
		require.LessOrEqual(t, most.Load(), int32(3))
	})

	t.Run("counts failures by name", func(t *testing.T) {
		t.Parallel()
		r := load.Run(t.Context(), load.Plan{Concurrency: 1, Duration: time.Minute, Count: 4},
			func(_ context.Context, n int) error {
				if n%2 == 0 {
					return errors.New("denied")
				}
				return nil
			}, text)
		require.Equal(t, map[string]int{"denied": 2}, r.Errors)
		require.Equal(t, 4, r.Calls)
	})

	t.Run("reports progress once a second", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var reports []int
			load.Run(t.Context(), load.Plan{Rate: 10, Concurrency: 1, Duration: 3500 * time.Millisecond,
				Progress: func(done int, _ time.Duration) {
					reports = append(reports, done)
				}},
				func(context.Context, int) error { return nil }, text)
			require.Len(t, reports, 3)
		})
	})
}
