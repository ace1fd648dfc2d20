// Package instant turns moments into text and back: RFC 3339, UTC, milliseconds
// (https://www.rfc-editor.org/rfc/rfc3339). Inside Sluice a moment is an integer of milliseconds
// since the Unix epoch, never a float.
package instant

import (
	"errors"
	"time"
)

const layout = "2006-01-02T15:04:05.000Z"

// Format writes ms, milliseconds since the epoch, as "2026-01-02T15:04:05.678Z".
func Format(ms int64) string { return time.UnixMilli(ms).UTC().Format(layout) }

// Parse reads any RFC 3339 instant and rounds it up to a whole millisecond, so that what is due
// then is never early.
func Parse(s string) (ms int64, err error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, errors.New("must be an RFC 3339 instant such as 2026-01-02T15:04:05.678Z")
	}
	return CeilMilli(t), nil
}

// CeilMilli is t in milliseconds since the epoch, rounded up.
func CeilMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
