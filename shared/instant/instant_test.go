package instant_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/instant"
)

func TestParseRoundsUpSoThatNothingIsEarly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"whole milliseconds stay":          {"2026-12-01T10:00:00.123Z", "2026-12-01T10:00:00.123Z"},
		"a microsecond more is rounded up": {"2026-12-01T10:00:00.123001Z", "2026-12-01T10:00:00.124Z"},
		"the end of a second carries over": {"2026-12-01T10:00:00.9999Z", "2026-12-01T10:00:01.000Z"},
		"an offset becomes UTC":            {"2026-12-01T12:00:00+02:00", "2026-12-01T10:00:00.000Z"},
		"before the epoch rounds up too":   {"1969-12-31T23:59:59.9995Z", "1970-01-01T00:00:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms, err := instant.Parse(tc.text)
			require.NoError(t, err)
			require.Equal(t, tc.want, instant.Format(ms))
		})
	}
}

func TestParseRefusesWhatIsNoInstant(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "tomorrow", "2026-12-01", "2026-12-01T10:00:00", "1764583200",
		"2026-13-01T10:00:00Z"} {
		_, err := instant.Parse(text)
		require.ErrorContains(t, err, "RFC 3339", text)
	}
}

func TestFormatAndParseAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999).Draw(t, "ms") // years 1 to 9999
		back, err := instant.Parse(instant.Format(ms))
		if err != nil || back != ms {
			t.Fatalf("%d became %d (%v)", ms, back, err)
		}
	})
}
