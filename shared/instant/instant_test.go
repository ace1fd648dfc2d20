package instant_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/instant"
)

func TestParse(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"keeps whole milliseconds":             {"2026-12-01T10:00:00.123Z", "2026-12-01T10:00:00.123Z"},
		"rounds microseconds up":               {"2026-12-01T10:00:00.123001Z", "2026-12-01T10:00:00.124Z"},
		"carries over to the next second":      {"2026-12-01T10:00:00.9999Z", "2026-12-01T10:00:01.000Z"},
		"converts an offset to UTC":            {"2026-12-01T12:00:00+02:00", "2026-12-01T10:00:00.000Z"},
		"also rounds up before the Unix epoch": {"1969-12-31T23:59:59.9995Z", "1970-01-01T00:00:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, err := instant.Parse(tc.text)
			require.NoError(t, err)
			require.Equal(t, time.UTC, at.Location())
			require.Equal(t, tc.want, instant.Format(at))
		})
	}

	t.Run("refuses other text", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", "tomorrow", "2026-12-01", "2026-12-01T10:00:00", "1764583200",
			"2026-13-01T10:00:00Z"} {
			_, err := instant.Parse(text)
			require.ErrorContains(t, err, "RFC 3339", text)
		}
	})

	t.Run("is the inverse of Format", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			years1To9999 := rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999)
			at := time.UnixMilli(years1To9999.Draw(t, "ms"))
			parsed, err := instant.Parse(instant.Format(at))
			if err != nil || !parsed.Equal(at) {
				t.Fatalf("%v became %v (%v)", at, parsed, err)
			}
		})
	})
}
