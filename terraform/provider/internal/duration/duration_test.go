package duration_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

const day = 24 * time.Hour

func TestParse(t *testing.T) {
	t.Parallel()
	t.Run("accepts numbers with units, alone or combined", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]time.Duration{
			"1ms": time.Millisecond, "500ms": 500 * time.Millisecond, "1s": time.Second, "0.001s": time.Millisecond,
			"1.5s": 1500 * time.Millisecond, "60s": time.Minute, "1m": time.Minute, "90m": 90 * time.Minute,
			"1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "1d": day, "0.5d": day / 2, "2w": 14 * day,
			"366d": 366 * day, "1m1ms": time.Minute + time.Millisecond, "0s": 0, "007s": 7 * time.Second,
		} {
			got, err := duration.Parse(text)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
	})
	t.Run("refuses other text, with examples in the message", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", "1", "h", "-1s", "1 s", "1h 30m", "1y", "1S", "1.s", ".5s", "1e3s", "1hour",
			"½h", "1s\n"} {
			_, err := duration.Parse(text)
			require.ErrorContains(t, err, `such as "500ms", "1s", "90m", "1h30m" or "7d"`, "%q", text)
		}
	})
	t.Run("refuses lengths out of range", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"9999999999999999w", "9000000000000000s", "9999w9999w9999w",
			"1000000000000w1000000000000w1000000000000w", "99999999999999999999s"} {
			_, err := duration.Parse(text)
			require.Error(t, err, text)
		}
	})
	t.Run("refuses fractions of a millisecond", func(t *testing.T) {
		t.Parallel()
		_, err := duration.Parse("1.0005s")
		require.ErrorContains(t, err, "is not a multiple of a millisecond")
	})
}

func TestFormat(t *testing.T) {
	t.Parallel()
	t.Run("writes text that Parse reads back", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			const century = 100 * 366 * day
			ms := rapid.Int64Range(0, century.Milliseconds()).Draw(t, "ms")
			length := time.Duration(ms) * time.Millisecond
			got, err := duration.Parse(duration.Format(length))
			require.NoError(t, err)
			require.Equal(t, length, got, duration.Format(length))
		})
	})
	t.Run("combines units and omits units whose number is 0", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "1h30m", duration.Format(90*time.Minute))
		require.Equal(t, "366d", duration.Format(366*day))
		require.Equal(t, "1m1ms", duration.Format(time.Minute+time.Millisecond))
		require.Equal(t, "0s", duration.Format(0))
	})
}

func TestValue(t *testing.T) {
	t.Parallel()
	value := func(text string) duration.Value { return duration.Value{StringValue: types.StringValue(text)} }
	t.Run("equals another value of the same length", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			a, b duration.Value
			want bool
		}{
			{value("1h"), value("60m"), true},
			{value("1h"), value("3600s"), true},
			{value("1h"), value("61m"), false},
			{value("1h"), duration.Null(), false},
			{value("one hour"), value("one hour"), false},
		} {
			equal, diags := c.a.StringSemanticEquals(t.Context(), c.b)
			require.False(t, diags.HasError())
			require.Equal(t, c.want, equal, "%s and %s", c.a, c.b)
		}
	})
	t.Run("refuses a text that is not a duration, but accepts null and unknown values", func(t *testing.T) {
		t.Parallel()
		for v, refused := range map[duration.Value]bool{
			{StringValue: types.StringUnknown()}: false,
			{StringValue: types.StringNull()}:    false,
			value("1h"):                          false,
			value("1hr"):                         true,
		} {
			var resp xattr.ValidateAttributeResponse
			v.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("window")}, &resp)
			require.Equal(t, refused, resp.Diagnostics.HasError(), v.String())
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1h30m", "1.5h", "", "9999999999999999w", "1ms1ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		length, err := duration.Parse(text)
		if err == nil && length < 0 {
			t.Fatalf("%q is %s", text, length)
		}
	})
}
