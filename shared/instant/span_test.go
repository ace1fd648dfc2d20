package instant_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/instant"
)

func TestMilliseconds(t *testing.T) {
	t.Parallel()

	t.Run("converts", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 1500*time.Millisecond, instant.Milliseconds(1500))
		require.Equal(t, -time.Millisecond, instant.Milliseconds(-1))
	})

	t.Run("saturates instead of overflowing", func(t *testing.T) {
		t.Parallel()
		const century = 100 * 365 * 24 * time.Hour
		for _, ms := range []int64{math.MaxInt64, math.MaxInt64 / 1000, math.MaxInt64/1_000_000 + 1} {
			require.Greater(t, instant.Milliseconds(ms), century, ms)
			require.Less(t, instant.Milliseconds(-ms), -century, ms)
		}
		require.Less(t, instant.Milliseconds(math.MinInt64), -century)
	})
}

func TestCeil(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]int64{
		0:                        {0, 0},
		1:                        {1, 1},
		time.Millisecond:         {1, 1},
		time.Millisecond + 1:     {2, 1},
		time.Second:              {1000, 1},
		time.Second + 1:          {1001, 2},
		-1500 * time.Microsecond: {-1, 0},
		math.MaxInt64:            {9_223_372_036_855, 9_223_372_037},
	} {
		require.Equal(t, want, [2]int64{instant.CeilMilliseconds(d), instant.CeilSeconds(d)}, d)
	}
}
