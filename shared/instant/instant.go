// Package instant converts the instants and spans of the HTTP API. An instant is RFC 3339 text in
// UTC with milliseconds (https://www.rfc-editor.org/rfc/rfc3339), and a span is a whole number of
// milliseconds. Sluice holds them as [time.Time] and [time.Duration] everywhere else.
package instant

import (
	"errors"
	"time"
)

const layout = "2006-01-02T15:04:05.000Z"

// Format formats t as "2026-01-02T15:04:05.678Z". Fractions of a millisecond are cut off.
func Format(t time.Time) string { return t.UTC().Format(layout) }

// Parse parses any RFC 3339 instant and rounds it up to a whole millisecond, so that nothing that
// is due then happens early. The result is in UTC.
func Parse(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.New("must be an RFC 3339 instant such as 2026-01-02T15:04:05.678Z")
	}
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC(), nil
}
