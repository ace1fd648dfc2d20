package delayqueue

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each bound is tested twice: the bound itself is accepted, and the next value outside it is
// rejected.
func TestJobNormalize_bounds(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	now := time.Now()
	for field, set := range map[string]struct{ accepted, refused []func(*Job) }{
		"id": {
			accepted: []func(*Job){
				func(j *Job) { j.ID = strings.Repeat("a", 128) },
				func(j *Job) { j.ID = "0:._-" },
			},
			refused: []func(*Job){
				func(j *Job) { j.ID = strings.Repeat("a", 129) },
				func(j *Job) { j.ID = ".a" },
				func(j *Job) { j.ID = "a\n" },
				func(j *Job) { j.ID = "{a}" },
			},
		},
		"payload": {
			accepted: []func(*Job){
				func(j *Job) { j.Payload = []byte("null") },
				func(j *Job) { j.Payload = []byte(` {"a": [1, 2.5e3, "\ufffe"], "a": 1} `) },
				func(j *Job) { j.Payload = []byte(`"` + strings.Repeat("x", MaxPayload-2) + `"`) },
				func(j *Job) { j.Payload = []byte(nested(MaxPayloadDepth)) },
				func(j *Job) { j.Payload = []byte(`["` + strings.Repeat(`[{\"`, 300) + `"]`) },
				func(j *Job) { j.Payload = []byte(`[` + strings.Repeat(`[],`, 300) + `{}]`) },
			},
			refused: []func(*Job){
				func(j *Job) { j.Payload = nil },
				func(j *Job) { j.Payload = []byte("") },
				func(j *Job) { j.Payload = []byte(" ") },
				func(j *Job) { j.Payload = []byte("{") },
				func(j *Job) { j.Payload = []byte("1 2") },
				func(j *Job) { j.Payload = []byte(nested(MaxPayloadDepth + 1)) },
				func(j *Job) { j.Payload = []byte(nested(9998)) },
				func(j *Job) { j.Payload = []byte("\"\uFFFE\"") },
				func(j *Job) { j.Payload = []byte("\"\uFFFF\"") },
				func(j *Job) { j.Payload = []byte("\"\xff\"") },
				func(j *Job) { j.Payload = []byte("\"\x01\"") },
			},
		},
		"delay_ms": {
			accepted: []func(*Job){
				func(j *Job) { j.Delay = 0 },
				func(j *Job) { j.Delay = -ms + 1 }, // rounded up to 0
				func(j *Job) { j.Delay = MaxDelay },
			},
			refused: []func(*Job){
				func(j *Job) { j.Delay = -ms },
				func(j *Job) { j.Delay = MaxDelay + 1 },
				func(j *Job) { j.Delay = math.MaxInt64 },
				func(j *Job) { j.Delay = math.MinInt64 },
			},
		},
		"run_at": {
			accepted: []func(*Job){
				func(j *Job) { j.RunAt = now.Add(MaxDelay) },
				func(j *Job) { j.RunAt = time.UnixMilli(0) },
				func(j *Job) { j.RunAt = time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC) },
			},
			refused: []func(*Job){
				func(j *Job) { j.RunAt = now.Add(MaxDelay + time.Minute) },
				func(j *Job) { j.RunAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) },
				func(j *Job) { j.RunAt, j.Delay = now, ms },
			},
		},
		"expires_at": {
			accepted: []func(*Job){
				func(j *Job) { j.ExpiresAt = now.Add(MaxDelay) },
				func(j *Job) { j.RunAt, j.ExpiresAt = now, now.Add(ms) },
				func(j *Job) { j.Delay, j.ExpiresAt = time.Hour, now }, // Normalize does not compare these two
			},
			refused: []func(*Job){
				func(j *Job) { j.ExpiresAt = now.Add(MaxDelay + time.Minute) },
				func(j *Job) { j.RunAt, j.ExpiresAt = now, now },
				func(j *Job) { j.RunAt, j.ExpiresAt = now, now.Add(-ms) },
			},
		},
		"max_attempts": {
			accepted: []func(*Job){
				func(j *Job) { j.MaxAttempts = 1 },
				func(j *Job) { j.MaxAttempts = 100 },
			},
			refused: []func(*Job){
				func(j *Job) { j.MaxAttempts = -1 },
				func(j *Job) { j.MaxAttempts = -3 },
				func(j *Job) { j.MaxAttempts = 101 },
			},
		},
		"ack_timeout_ms": {
			accepted: []func(*Job){
				func(j *Job) { j.AckTimeout = time.Second },
				func(j *Job) { j.AckTimeout = time.Second - ms + 1 }, // rounded up to 1 s
				func(j *Job) { j.AckTimeout = 12 * time.Hour },
			},
			refused: []func(*Job){
				func(j *Job) { j.AckTimeout = time.Second - ms },
				func(j *Job) { j.AckTimeout = -ms },
				func(j *Job) { j.AckTimeout = 12*time.Hour + 1 },
			},
		},
		"backoff.initial_ms": {
			accepted: []func(*Job){
				func(j *Job) { j.Backoff.Initial = ms },
				func(j *Job) { j.Backoff.Initial = 7 * 24 * time.Hour },
			},
			refused: []func(*Job){
				func(j *Job) { j.Backoff.Initial = -ms },
				func(j *Job) { j.Backoff.Initial = 7*24*time.Hour + 1 },
			},
		},
		"backoff.max_ms": {
			accepted: []func(*Job){
				func(j *Job) { j.Backoff = Backoff{Initial: ms, Max: ms} },
				func(j *Job) { j.Backoff.Max = 7 * 24 * time.Hour },
			},
			refused: []func(*Job){
				func(j *Job) { j.Backoff = Backoff{Initial: 2 * ms, Max: ms} },
				func(j *Job) { j.Backoff.Max = -ms },
				func(j *Job) { j.Backoff.Max = 7*24*time.Hour + 1 },
			},
		},
		"backoff.multiplier": {
			accepted: []func(*Job){
				func(j *Job) { j.Backoff.Multiplier = 1 },
				func(j *Job) { j.Backoff.Multiplier = 100 },
			},
			refused: []func(*Job){
				func(j *Job) { j.Backoff.Multiplier = 0.999 },
				func(j *Job) { j.Backoff.Multiplier = 100.001 },
				func(j *Job) { j.Backoff.Multiplier = math.NaN() },
				func(j *Job) { j.Backoff.Multiplier = math.Inf(1) },
			},
		},
		"group": {
			accepted: []func(*Job){
				func(j *Job) { j.Group = strings.Repeat("~", 128) },
				func(j *Job) { j.Group = "!" },
			},
			refused: []func(*Job){
				func(j *Job) { j.Group = strings.Repeat("~", 129) },
				func(j *Job) { j.Group = "a b" },
				func(j *Job) { j.Group = "a\x7f" },
				func(j *Job) { j.Group = "é" },
			},
		},
		"headers": {
			accepted: []func(*Job){
				func(j *Job) { j.Headers = headersOf(8, 1) },
				func(j *Job) { j.Headers = headersOf(8, 511) }, // 8 × (1 + 511) = 4096 bytes
			},
			refused: []func(*Job){
				func(j *Job) { j.Headers = headersOf(9, 1) },
				func(j *Job) { j.Headers = headersOf(8, 511); j.Headers["a"] += "x" },
				func(j *Job) { j.Headers = map[string]string{strings.Repeat("n", 257): "v"} },
				func(j *Job) { j.Headers = map[string]string{"a\r\nb": "v"} },
			},
		},
		"headers.h": {
			accepted: []func(*Job){
				func(j *Job) { j.Headers = map[string]string{"h": "text, and ünïcode"} },
				func(j *Job) { j.Headers = map[string]string{strings.Repeat("n", 256): "v"} },
			},
			refused: []func(*Job){
				func(j *Job) { j.Headers = map[string]string{"h": ""} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\rb"} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\nb"} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\tb"} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\x00"} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\x7f"} },
				func(j *Job) { j.Headers = map[string]string{"h": "a\u0085"} },
				func(j *Job) { j.Headers = map[string]string{"h": "\xff"} },
			},
		},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			for i, change := range set.accepted {
				_, err := valid(change).Normalize()
				require.NoError(t, err, "accepted case %d", i)
			}
			for i, change := range set.refused {
				_, err := valid(change).Normalize()
				require.Equal(t, []string{field}, invalidFields(t, err), "refused case %d", i)
			}
		})
	}

	t.Run("payload over MaxPayload", func(t *testing.T) {
		t.Parallel()
		_, err := valid(func(j *Job) { j.Payload = []byte(`"` + strings.Repeat("x", MaxPayload-1) + `"`) }).Normalize()
		require.ErrorIs(t, err, ErrPayloadTooLarge)
	})
}

// nested returns a JSON array that is nested n levels deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// headersOf returns n headers with names of one letter and values of size bytes.
func headersOf(n, size int) map[string]string {
	headers := make(map[string]string, n)
	for i := range n {
		headers[string(rune('a'+i))] = strings.Repeat("v", size)
	}
	return headers
}
