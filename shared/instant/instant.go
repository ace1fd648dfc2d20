// Package instant converts the times and durations of the HTTP API. In the API, a time is RFC 3339
// text in UTC with milliseconds (https://www.rfc-editor.org/rfc/rfc3339), and a duration is a whole
// number of milliseconds. All other code uses [time.Time] and [time.Duration].
package instant

import (
	"errors"
	"time"
)

const layout = "2006-01-02T15:04:05.000Z"

// Format formats t as "2026-01-02T15:04:05.678Z". It truncates t to whole milliseconds.
func Format(t time.Time) string { return t.UTC().Format(layout) }

// Parse parses an RFC 3339 time and rounds it up to a whole millisecond, so that a job never runs
// early. The result is in UTC.
func Parse(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.New("must be an RFC 3339 time such as 2026-01-02T15:04:05.678Z")
	}
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC(), nil
}
