package human_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
)

const day = 24 * time.Hour

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "5m": 5 * time.Minute, "2d": 2 * day, "1w": 7 * day, "1d12h": 36 * time.Hour,
		"1w1d": 8 * day, "1.5d": 36 * time.Hour,
		"1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0": 0, "-5m": -5 * time.Minute, "-1d": -day,
		"3650d": 3650 * day,
	} {
		got, err := human.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	got, err := human.ParseDuration(" 3s ")
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, got)
	for _, text := range []string{"", "-", "5", "5 minutes", "d", "xd", "1d1d", "1h2d", "soon", "--5m", "1d-5h",
		"99999999999w", "99999999d99999999h", "NaNd", "1d5"} {
		_, err := human.ParseDuration(text)
		require.Error(t, err, text)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	t.Run("formats two units", func(t *testing.T) {
		t.Parallel()
		for want, d := range map[string]time.Duration{
			"0ms": 0, "85ms": 85*time.Millisecond + 900*time.Microsecond, "1s": time.Second,
			"3.2s": 3290 * time.Millisecond, "12s": 12900 * time.Millisecond,
			"5m12s": 5*time.Minute + 12*time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "2d3h": 2*day +
				3*time.Hour + 59*time.Minute, "-5m": -5 * time.Minute,
		} {
			require.Equal(t, want, human.Duration(d))
		}
	})

	t.Run("ParseDuration returns the same duration, up to the rounding", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, int64(1000*day)).Draw(t, "d"))
			got, err := human.ParseDuration(human.Duration(d))
			if err != nil || got > d || d-got > max(d/10, time.Millisecond) {
				t.Fatalf("%s was written as %s and read as %s: %v", d, human.Duration(d), got, err)
			}
		})
	})
}

func TestInstant(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	require.Equal(t, "2026-01-02 15:09:05 (in 5m)", human.Instant(now.Add(5*time.Minute), now))
	require.Equal(t, "2026-01-02 15:04:02 (3s ago)", human.Instant(now.Add(-3*time.Second), now))
	require.Equal(t, "2026-01-02 15:04:05 (now)", human.Instant(now.Add(300*time.Millisecond), now))
	require.Equal(t, "-", human.Instant(time.Time{}, now))
	elsewhere := now.In(time.FixedZone("", 3600))
	require.Equal(t, "2026-01-02 16:04:05 (now)", human.Instant(now, elsewhere), "in the zone of the current time")
}
