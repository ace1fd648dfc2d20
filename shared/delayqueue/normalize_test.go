package delayqueue

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/fault"
)

// valid returns a minimal valid job after the function set has changed it.
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

	t.Run("fills in the defaults", func(t *testing.T) {
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

	t.Run("fills in the defaults of a partial backoff", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct{ given, want Backoff }{
			"none": {Backoff{}, Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}},
			"jitter only": {Backoff{Jitter: true},
				Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 2, Jitter: true}},
			"initial only": {Backoff{Initial: time.Minute},
				Backoff{Initial: time.Minute, Max: time.Hour, Multiplier: 2}},
			"initial at the default max": {Backoff{Initial: time.Hour},
				Backoff{Initial: time.Hour, Max: time.Hour, Multiplier: 2}},
			"initial over the default max": {Backoff{Initial: time.Hour + time.Millisecond},
				Backoff{Initial: time.Hour + time.Millisecond, Max: time.Hour + time.Millisecond, Multiplier: 2}},
			"max only": {Backoff{Max: time.Minute},
				Backoff{Initial: time.Second, Max: time.Minute, Multiplier: 2}},
			"multiplier only": {Backoff{Multiplier: 3},
				Backoff{Initial: time.Second, Max: time.Hour, Multiplier: 3}},
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
			"id", "payload", "run_at", "delay_ms", "max_attempts", "ack_timeout_ms",
			"backoff.initial_ms", "backoff.max_ms", "backoff.multiplier",
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
		"payload at maximum depth":   {Change{Payload: []byte(nested(MaxPayloadDepth))}, nil},
		"payload over maximum depth": {Change{Payload: []byte(nested(MaxPayloadDepth + 1))}, []string{"payload"}},
		"invalid payload and delay": {
			Change{Payload: []byte("{"), Delay: new(-time.Hour)}, []string{"delay_ms", "payload"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.change.Normalize()
			require.ElementsMatch(t, c.refused, invalidFields(t, err))
		})
	}
}
