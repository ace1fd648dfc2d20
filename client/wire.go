package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// millis is a duration whose JSON form is a whole number of milliseconds.
type millis time.Duration

// MarshalJSON implements json.Marshaler.
func (m millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(m).Milliseconds(), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler. A number that is too large for a time.Duration becomes
// the longest time.Duration.
func (m *millis) UnmarshalJSON(text []byte) error {
	var ms int64
	if err := json.Unmarshal(text, &ms); err != nil {
		return err
	}
	*m = millis(milliseconds(ms))
	return nil
}

// milliseconds converts ms to a time.Duration. If the result would overflow, it returns the longest
// time.Duration with the sign of ms.
func milliseconds(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// ceilMillis converts d to milliseconds. It rounds up, so that a job is never due early.
func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// ceilMillisOrNil returns nil for nil, so that the request omits the field.
func ceilMillisOrNil(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(ceilMillis(*d))
}

// instant formats t as the API does. It rounds up to a millisecond, so that a job is never due
// early. The result is "" for the zero time.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}

// encodePayload encodes the payload of a job. It encodes nil as JSON's null.
func encodePayload(v any) (json.RawMessage, error) {
	text, err := encodeJSON(v)
	if err != nil {
		return nil, fmt.Errorf("the payload cannot be encoded as JSON: %w", err)
	}
	return text, nil
}

// encodeJSON encodes v like json.Marshal, but does not escape <, > and &, which would make a
// payload longer.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// pathTo joins segments into a path. It also escapes colons, as the AWS SDK does. url.PathEscape
// does not escape them.
func pathTo(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ":", "%3A"))
	}
	return b.String()
}
