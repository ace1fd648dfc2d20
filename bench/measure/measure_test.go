package measure_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/bench/measure"
)

func TestContendersTakeTurnsAndAreComparedRoundByRound(t *testing.T) {
	t.Parallel()
	var order []string
	op := func(name string, cost time.Duration) measure.Contender {
		return measure.Contender{
			Name: name, Before: func(context.Context) error { order = append(order, name); return nil },
			Op: func(context.Context, int, int) error {
				for started := time.Now(); time.Since(started) < cost; { //nolint:revive // a busy loop: real work, not sleep
				}
				return nil
			},
		}
	}
	samples, err := measure.Throughput(t.Context(), measure.Plan{Rounds: 4, Slice: 20 * time.Millisecond}, 1,
		[]measure.Contender{op("fast", 100*time.Microsecond), op("slow", 400*time.Microsecond)})
	require.NoError(t, err)
	require.Equal(t, []string{"fast", "slow", "fast", "slow", "slow", "fast", "fast", "slow", "slow", "fast"}, order)
	ratio, low, high := samples.Ratio("fast", "slow")
	require.InDelta(t, 4, ratio, 1.5)
	require.LessOrEqual(t, low, ratio)
	require.GreaterOrEqual(t, high, ratio)
}

func TestWhatFailsIsNotMeasured(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	_, err := measure.Throughput(t.Context(), measure.Plan{Rounds: 1, Slice: time.Millisecond}, 2,
		[]measure.Contender{{Name: "x", Op: func(context.Context, int, int) error { return boom }}})
	require.ErrorIs(t, err, boom)
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	require.InDelta(t, 1, measure.Quantile(values, 0), 0)
	require.InDelta(t, 3, measure.Quantile(values, 0.5), 0)
	require.InDelta(t, 5, measure.Quantile(values, 1), 0)
	require.Zero(t, measure.Quantile(nil, 0.5))
}
