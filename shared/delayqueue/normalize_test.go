package delayqueue

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/fault"
)

// valid returns a job that needs nothing else, changed by set.
func valid(set func(*Job)) Job {
	j := Job{ID: "a", Payload: []byte(`{}`)}
	set(&j)
	return j
}

// invalidFields returns the names of the fields that an error lists.
func invalidFields(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	require.ErrorIs(t, err, ErrInvalid)
	invalid, ok := errors.AsType[*fault.Error](err)
	require.True(t, ok)
	names := make([]string, len(invalid.Fields))
	for i, f := range invalid.Fields {
		names[i] = f.Field
	}
	return names
}

func TestJobNormalize(t *testing.T) {
	t.Parallel()

	t.Run("fills the defaults", func(t *testing.T) {
		t.Parallel()
		j, err := Job{Payload: []byte(`{}`)}.Normalize()
		require.NoError(t, err)
		require.Len(t, j.ID, 26, "a random ID")
		require.Equal(t, Job{
			ID:          j.ID,
			Payload:     []byte(`{}`),
			MaxAttempts: 1,
			AckTimeout:  30 * time.Second,
			Backoff:     Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true},
		}, j)
	})

	t.Run("fills the defaults of a partial backoff", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct{ given, want Backoff }{
			"none": {Backoff{}, Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}},
			"jitter only": {Backoff{Jitter: true},
				Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}},
			"initial only": {Backoff{Initial: time.Minute}, Backoff{Initial: time.Minute, Max: time.Hour, Multiplier: 2}},
			"initial at the default max": {Backoff{Initial: time.Hour},
				Backoff{Initial: time.Hour, Max: time.Hour, Multiplier: 2}},
			"initial over the default max": {Backoff{Initial: time.Hour + time.Millisecond},
				Backoff{Initial: time.Hour + time.Millisecond, Max: time.Hour + time.Millisecond, Multiplier: 2}},
			"max only":        {Backoff{Max: time.Minute}, Backoff{Initial: time.Second, Max: time.Minute, Multiplier: 2}},
			"multiplier only": {Backoff{Multiplier: 3}, Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 3}},
		} {
			j, err := valid(func(j *Job) { j.Backoff = c.given }).Normalize()
			require.NoError(t, err, name)
			require.Equal(t, c.want, j.Backoff, name)
		}
	})

	t.Run("rounds up to whole milliseconds", func(t *testing.T) {
		t.Parallel()
		at := time.UnixMilli(1_750_000_000_000)
		j, err := valid(func(j *Job) {
			j.RunAt, j.ExpiresAt = at.Add(time.Nanosecond), at.Add(time.Second-time.Nanosecond)
			j.AckTimeout = time.Second + time.Nanosecond
			j.Backoff = Backoff{Initial: time.Nanosecond, Max: 1500 * time.Microsecond, Multiplier: 1.23456}
		}).Normalize()
		require.NoError(t, err)
		require.Equal(t, at.Add(time.Millisecond).UTC(), j.RunAt)
		require.Equal(t, at.Add(time.Second).UTC(), j.ExpiresAt)
		require.Equal(t, 1001*time.Millisecond, j.AckTimeout)
		require.Equal(t, Backoff{Initial: time.Millisecond, Max: 2 * time.Millisecond, Multiplier: 1.235}, j.Backoff)

		j, err = valid(func(j *Job) { j.Delay = time.Nanosecond }).Normalize()
		require.NoError(t, err)
		require.Equal(t, time.Millisecond, j.Delay)
	})

	t.Run("drops an invalid traceparent", func(t *testing.T) {
		t.Parallel()
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		for given, want := range map[string]string{
			trace:                                   trace,
			"":                                      "",
			trace + "0":                             "",
			trace[:54]:                              "",
			strings.Replace(trace, "a", "A", 1):     "",
			strings.Replace(trace, "a", "g", 1):     "",
			strings.Replace(trace, "-", "0", 1):     "",
			strings.Replace(trace, "00-", "01-", 1): "",
			strings.Replace(trace, "a", "\n", 1):    "",
		} {
			j, err := valid(func(j *Job) { j.Trace = given }).Normalize()
			require.NoError(t, err, given)
			require.Equal(t, want, j.Trace, given)
		}
	})

	t.Run("lists every invalid field once", func(t *testing.T) {
		t.Parallel()
		given := Job{
			ID: "a b", Payload: []byte(`{`), RunAt: time.Now(), Delay: -time.Hour, MaxAttempts: -3, AckTimeout: -1,
			Backoff: Backoff{Initial: -time.Second, Max: -time.Second, Multiplier: -1}, ExpiresAt: time.UnixMilli(1),
			Group: "a b", Headers: map[string]string{"": "x", "b": ""},
		}
		j, err := given.Normalize()
		require.Equal(t, given, j, "an invalid job is returned as it was given")
		require.ElementsMatch(t, []string{
			"id", "payload", "run_at", "delay_ms", "max_attempts", "ack_timeout_ms", "backoff.initial_ms", "backoff.max_ms", "backoff.multiplier",
			"expires_at", "group", "headers.", "headers.b",
		}, invalidFields(t, err))
	})

	t.Run("changes nothing when repeated", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			span := func(name string, least, most time.Duration) time.Duration {
				return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(rt, name))
			}
			j := Job{
				Payload:     []byte(`[1]`),
				MaxAttempts: rapid.IntRange(0, MaxAttempts).Draw(rt, "max attempts"),
				AckTimeout:  span("ack timeout", MinAckTimeout, MaxAckTimeout),
				Backoff: Backoff{
					Initial:    span("initial", 0, time.Hour),
					Max:        span("max", time.Hour, MaxBackoff),
					Multiplier: rapid.Float64Range(1, MaxMultiplier).Draw(rt, "multiplier"),
					Jitter:     rapid.Bool().Draw(rt, "jitter"),
				},
			}
			if rapid.Bool().Draw(rt, "absolute") {
				j.RunAt = time.Now().Add(span("run at", -time.Hour, MaxDelay/2))
				j.ExpiresAt = j.RunAt.Add(span("expires at", time.Second, MaxDelay/2))
			} else {
				j.Delay = span("delay", 0, MaxDelay)
			}
			once, err := j.Normalize()
			require.NoError(rt, err)
			twice, err := once.Normalize()
			require.NoError(rt, err)
			require.Equal(rt, once, twice)
		})
	})
}

// Every bound is tested at the bound, which is accepted, and one beyond it.
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
				func(j *Job) { j.Delay, j.ExpiresAt = time.Hour, now }, // Redis' clock decides
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
				require.NoError(t, err, "accepted %d", i)
			}
			for i, change := range set.refused {
				_, err := valid(change).Normalize()
				require.Equal(t, []string{field}, invalidFields(t, err), "refused %d", i)
			}
		})
	}

	t.Run("payload over its size", func(t *testing.T) {
		t.Parallel()
		_, err := valid(func(j *Job) { j.Payload = []byte(`"` + strings.Repeat("x", MaxPayload-1) + `"`) }).Normalize()
		require.ErrorIs(t, err, ErrPayloadTooLarge)
	})
}

// nested returns arrays that are nested n deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// headersOf returns n headers with names of one letter and values of size bytes.
func headersOf(n, size int) map[string]string {
	headers := make(map[string]string, n)
	for i := range n {
		headers[string(rune('a'+i))] = strings.Repeat("v", size)
	}
	return headers
}

func TestJobCheckFor(t *testing.T) {
	t.Parallel()
	longest, tooLong := strings.Repeat("a", 116), strings.Repeat("a", 117)
	for name, c := range map[string]struct {
		url     string
		job     Job
		refused []string
	}{
		"standard: a long ID is accepted": {"https://sqs.test/1/orders", Job{ID: tooLong}, nil},
		"standard: a group is refused":    {"https://sqs.test/1/orders", Job{ID: "a", Group: "g"}, []string{"group"}},
		"fifo: the longest ID and a group are accepted": {
			"https://sqs.test/1/orders.fifo", Job{ID: longest, Group: "g"}, nil},
		"fifo: a longer ID is refused": {"https://sqs.test/1/orders.fifo", Job{ID: tooLong}, []string{"id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.refused, invalidFields(t, c.job.CheckFor(QueueTypeOf(c.url))))
		})
	}
}

func TestChangeNormalize(t *testing.T) {
	t.Parallel()
	now := time.Now()

	t.Run("rounds up to whole milliseconds", func(t *testing.T) {
		t.Parallel()
		c, err := Change{Delay: new(time.Nanosecond)}.Normalize()
		require.NoError(t, err)
		require.Equal(t, time.Millisecond, *c.Delay)
		c, err = Change{RunAt: time.UnixMilli(5).Add(time.Nanosecond)}.Normalize()
		require.NoError(t, err)
		require.Equal(t, time.UnixMilli(6).UTC(), c.RunAt)
	})

	for name, c := range map[string]struct {
		change  Change
		refused []string
	}{
		"nothing to change":          {Change{}, []string{"body"}},
		"delay at its minimum":       {Change{Delay: new(time.Duration)}, nil},
		"delay under its minimum":    {Change{Delay: new(-time.Millisecond)}, []string{"delay_ms"}},
		"delay at its maximum":       {Change{Delay: new(MaxDelay)}, nil},
		"delay over its maximum":     {Change{Delay: new(MaxDelay + 1)}, []string{"delay_ms"}},
		"run_at at its maximum":      {Change{RunAt: now.Add(MaxDelay)}, nil},
		"run_at over its maximum":    {Change{RunAt: now.Add(MaxDelay + time.Minute)}, []string{"run_at"}},
		"run_at and a delay":         {Change{RunAt: now, Delay: new(time.Second)}, []string{"run_at"}},
		"payload":                    {Change{Payload: []byte("null")}, nil},
		"payload that is not JSON":   {Change{Payload: []byte("{")}, []string{"payload"}},
		"payload at its depth":       {Change{Payload: []byte(nested(MaxPayloadDepth))}, nil},
		"payload over its depth":     {Change{Payload: []byte(nested(MaxPayloadDepth + 1))}, []string{"payload"}},
		"payload and a bad due time": {Change{Payload: []byte("{"), Delay: new(-time.Hour)}, []string{"delay_ms", "payload"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.change.Normalize()
			require.ElementsMatch(t, c.refused, invalidFields(t, err))
		})
	}
}
