package provider

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	t.Run("accepts a limit, a slash and a time", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]policy.Rule{
			"100/m":     {Name: "per-1m", Limit: 100, Window: time.Minute},
			"5/s":       {Name: "per-1s", Limit: 5, Window: time.Second},
			"1000/h":    {Name: "per-1h", Limit: 1000, Window: time.Hour},
			"7/d":       {Name: "per-1d", Limit: 7, Window: 24 * time.Hour},
			"7/w":       {Name: "per-7d", Limit: 7, Window: 7 * 24 * time.Hour},
			"1000/15m":  {Name: "per-15m", Limit: 1000, Window: 15 * time.Minute},
			"60/60s":    {Name: "per-1m", Limit: 60, Window: time.Minute},
			"9/1h30m":   {Name: "per-1h30m", Limit: 9, Window: 90 * time.Minute},
			"10/500ms":  {Name: "per-500ms", Limit: 10, Window: 500 * time.Millisecond},
			"10/ms":     {Name: "per-1ms", Limit: 10, Window: time.Millisecond},
			"0005/0.5s": {Name: "per-500ms", Limit: 5, Window: 500 * time.Millisecond},
		} {
			got, err := parseRate(text)
			require.NoError(t, err, text)
			want.Algorithm = policy.GCRA
			require.Equal(t, want, got, text)
		}
	})

	t.Run("refuses other text and names the reason", func(t *testing.T) {
		t.Parallel()
		const form = "a limit, a slash and a time"
		for text, want := range map[string]string{
			"": form, "100": form, "100/": form, "/m": form, "-1/m": form, "1.5/m": form, "100 / m": form,
			"100/y": "has an invalid time", "100/m/s": "has an invalid time", "100/minute": "has an invalid time",
			"0/m": "limit must be 1 to", "9999999999/m": "limit must be 1 to",
			"1/0s": "window must be 1ms to 366d", "1/600d": "window must be 1ms to 366d",
			"1000000000/366d": "overflow",
		} {
			_, err := parseRate(text)
			require.ErrorContains(t, err, want, "%q", text)
		}
	})

	t.Run("returns only valid rules", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.StringMatching(`[0-9]{1,12}/[0-9]{0,4}(ms|s|m|h|d|w|y)?`).Draw(t, "rate")
			rule, err := parseRate(text)
			if err == nil {
				_, err = policy.Policy{Name: "p", Rules: []policy.Rule{rule}}.Normalize()
				require.NoError(t, err, text)
			}
		})
	})
}

// worstCase calls the function through the framework.
func worstCase(t require.TestingT, rule attr.Value) (int64, *function.FuncError) {
	resp := function.RunResponse{Result: function.NewResultData(types.Int64Unknown())}
	worstCaseFunction{}.Run(
		context.Background(),
		function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{types.DynamicValue(rule)})}, &resp,
	)
	result, ok := resp.Result.Value().(types.Int64)
	require.True(t, ok)
	return result.ValueInt64(), resp.Error
}

// object returns an object with the attributes.
func object(parts map[string]attr.Value) attr.Value {
	kinds := make(map[string]attr.Type, len(parts))
	for name, v := range parts {
		kinds[name] = v.Type(context.Background())
	}
	return types.ObjectValueMust(kinds, parts)
}

func number(n int64) attr.Value { return types.NumberValue(new(big.Float).SetInt64(n)) }

func TestWorstCase(t *testing.T) {
	t.Parallel()
	t.Run("returns the same bound as the limiter's code", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			rule := policy.Rule{
				Name: "r", Algorithm: rapid.SampledFrom([]policy.Algorithm{policy.FixedWindow, policy.SlidingWindow,
					policy.SlidingWindowCounter, policy.TokenBucket, policy.GCRA}).Draw(t, "algorithm"),
				Limit:  rapid.Int64Range(1, 100_000).Draw(t, "limit"),
				Window: instant.Milliseconds(rapid.Int64Range(1, 100_000).Draw(t, "window")),
			}
			parts := map[string]attr.Value{
				"algorithm": types.StringValue(string(rule.Algorithm)), "limit": number(rule.Limit),
				"window": types.StringValue(duration.Format(rule.Window)),
			}
			if rule.Algorithm == policy.TokenBucket || rule.Algorithm == policy.GCRA {
				rule.Burst = rapid.Int64Range(0, 1000).Draw(t, "burst")
				parts["burst"] = types.NumberNull()
				if rule.Burst > 0 {
					parts["burst"] = number(rule.Burst)
				}
			}
			got, refusal := worstCase(t, object(parts))
			require.Nil(t, refusal)
			require.Equal(t, rule.WorstCase(), got)
		})
	})

	t.Run("refuses an invalid rule and names the reason", func(t *testing.T) {
		t.Parallel()
		with := func(name string, value attr.Value) attr.Value {
			parts := map[string]attr.Value{
				"algorithm": types.StringValue("gcra"), "limit": number(5), "window": types.StringValue("1s"),
			}
			parts[name] = value
			return object(parts)
		}
		for title, c := range map[string]struct {
			rule attr.Value
			want string
		}{
			"a string":             {types.StringValue("100/m"), "must be an object"},
			"an empty object":      {object(map[string]attr.Value{}), "requires algorithm, a string"},
			"an unknown attribute": {with("limits", number(5)), "has the unknown attribute limits"},
			"a number as window":   {with("window", number(5)), "requires window, a string"},
			"a string as limit":    {with("limit", types.StringValue("5")), "requires limit, a number"},
			"a fraction as limit": {
				with("limit", types.NumberValue(big.NewFloat(1.5))), "a limit that is not an integer",
			},
			"a window that is no duration": {
				with("window", types.StringValue("soon")), "has a window that must be a length of time",
			},
			"a burst of 0":         {with("burst", number(0)), "has a burst of 0"},
			"an unknown algorithm": {with("algorithm", types.StringValue("leaky")), "algorithm must be"},
			"a limit out of range": {with("limit", number(2_000_000_000)), "limit must be 1 to"},
		} {
			_, refusal := worstCase(t, c.rule)
			require.NotNil(t, refusal, title)
			require.Contains(t, refusal.Text, c.want, title)
		}
	})
}
