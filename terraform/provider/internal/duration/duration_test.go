package duration_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

func TestADurationIsReadAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for text, ms := range map[string]int64{
		"1ms": 1, "500ms": 500, "1s": 1000, "0.001s": 1, "1.5s": 1500, "60s": 60_000, "1m": 60_000, "90m": 5_400_000,
		"1h30m": 5_400_000, "1.5h": 5_400_000,
		"1d": 86_400_000, "0.5d": 43_200_000, "2w": 1_209_600_000, "366d": 31_622_400_000, "1m1ms": 60_001, "0s": 0,
		"007s": 7000,
	} {
		got, err := duration.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, ms, got, text)
	}
}

func TestWhatIsNoDurationSaysWhatIsOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1", "h", "-1s", "1 s", "1h 30m", "1y", "1S", "1.s", ".5s", "1e3s", "1hour", "½h",
		"1s\n"} {
		_, err := duration.Parse(text)
		require.ErrorContains(t, err, `such as "500ms", "1s", "90m", "1h30m" or "7d"`, "%q", text)
	}
	for _, text := range []string{"9999999999999999w", "9000000000000000s",
		"1000000000000w1000000000000w1000000000000w", "99999999999999999999s"} {
		_, err := duration.Parse(text)
		require.Error(t, err, text)
	}
	_, err := duration.Parse("1.0005s")
	require.ErrorContains(t, err, "not a whole number of milliseconds")
}

func TestEveryLengthIsReadBackAsItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<50).Draw(t, "ms")
		got, err := duration.Parse(duration.Format(ms))
		require.NoError(t, err)
		require.Equal(t, ms, got, duration.Format(ms))
	})
	require.Equal(t, "1h30m", duration.Format(5_400_000))
	require.Equal(t, "366d", duration.Format(31_622_400_000))
	require.Equal(t, "1m1ms", duration.Format(60_001), "a unit of nothing is left out")
}

func TestTwoFormsOfOneLengthAreOneValue(t *testing.T) {
	t.Parallel()
	value := func(text string) duration.Value { return duration.Value{StringValue: types.StringValue(text)} }
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
		equal, diagnostics := c.a.StringSemanticEquals(t.Context(), c.b)
		require.False(t, diagnostics.HasError())
		require.Equal(t, c.want, equal, "%s and %s", c.a, c.b)
	}
}

func TestAnUnknownDurationIsNotRefused(t *testing.T) {
	t.Parallel()
	for value, refused := range map[duration.Value]bool{
		{StringValue: types.StringUnknown()}:    false,
		{StringValue: types.StringNull()}:       false,
		{StringValue: types.StringValue("1h")}:  false,
		{StringValue: types.StringValue("1hr")}: true,
	} {
		var response xattr.ValidateAttributeResponse
		value.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("window")}, &response)
		require.Equal(t, refused, response.Diagnostics.HasError(), value.String())
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1h30m", "1.5h", "", "9999999999999999w", "1ms1ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := duration.Parse(text)
		if err == nil && ms < 0 {
			t.Fatalf("%q is %d ms", text, ms)
		}
	})
}
