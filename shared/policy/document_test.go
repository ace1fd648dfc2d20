package policy_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

func parse(t *testing.T, text string) policy.Document {
	t.Helper()
	var d policy.Document
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	return d
}

func TestDocumentNormalize(t *testing.T) {
	t.Parallel()
	const rules = `"rules": [{"name": "r", "algorithm": "gcra", "limit": 10, "window_ms": 1500}]`

	t.Run("absent and null members: have defaults", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{
			`{"name": "p", ` + rules + `}`,
			`{"name": "p", "mode": null, "on_unavailable": null, "local_share": null, "overrides": null, ` +
				rules + `}`,
		} {
			p, err := parse(t, text).Normalize()
			require.NoError(t, err)
			require.Equal(t, policy.Policy{
				Name: "p", Mode: policy.Enforce, OnUnavailable: policy.UnavailableLocal, LocalShare: 0.1,
				Rules: []policy.Rule{rule(policy.GCRA, 10, 1500*time.Millisecond, 0)},
			}, p)
		}
	})

	t.Run("explicit zero values: are refused", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string][]string{
			`{"name": "", ` + rules + `}`:                        {"name"},
			`{"name": "p", "mode": "", ` + rules + `}`:           {"mode"},
			`{"name": "p", "on_unavailable": "", ` + rules + `}`: {"on_unavailable"},
			`{"name": "p", "local_share": 0, ` + rules + `}`:     {"local_share"},
			`{"name": "p", "rules": []}`:                         {"rules"},
			`{"name": "p", "rules": [{"name": "r", "algorithm": "gcra", "limit": 1, "window_ms": 1, "burst": 0}]}`: {
				"rules[0].burst"},
			`{"name": "p", "overrides": [{"key": "k", "mode": "", ` + rules + `}], ` + rules + `}`: {
				"overrides[0].mode"},
			`{"name": "p", "overrides": [{"key": "k", "mode": "deny", "rules": []}], ` + rules + `}`: {
				"overrides[0].rules"},
			`{"name": "p", ` + rules + `, "overrides": [{"key": "k", "rules":
				[{"name": "r", "algorithm": "gcra", "limit": 1, "window_ms": 1, "burst": 0}]}]}`: {
				"overrides[0].rules[0].burst"},
		} {
			_, err := parse(t, text).Normalize()
			require.Equal(t, want, badFields(t, err), text)
		}
	})

	t.Run("windows too long for a time.Duration: are refused", func(t *testing.T) {
		t.Parallel()
		for _, ms := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64/1_000_000 + 1} {
			d := policy.Policy{Name: "p", Rules: []policy.Rule{rule(policy.GCRA, 1, time.Second, 0)}}.Document()
			d.Rules[0].WindowMS = ms
			_, err := d.Normalize()
			require.Equal(t, []string{"rules[0].window_ms"}, badFields(t, err), ms)
		}
	})
}

func TestDocument(t *testing.T) {
	t.Parallel()
	p, err := policy.Policy{
		Name: "login", Description: "ü", Mode: policy.Shadow, NoDenyCache: true, LocalShare: 0.25,
		Rules: []policy.Rule{
			rule(policy.TokenBucket, 10, time.Second, 20),
			{Name: "daily", Algorithm: policy.FixedWindow, Limit: 5, Window: day},
		},
		Overrides: []policy.Override{
			{Key: "bot-*", Mode: policy.Deny}, {Key: "gold", Rules: []policy.Rule{rule(policy.GCRA, 5, time.Hour, 0)}},
		},
	}.Normalize()
	require.NoError(t, err)

	text, err := json.Marshal(p.Document())
	require.NoError(t, err)
	require.JSONEq(t, `{
		"name": "login", "description": "ü", "mode": "shadow", "on_unavailable": "local", "local_share": 0.25,
		"no_deny_cache": true,
		"rules": [
			{"name": "r", "algorithm": "token_bucket", "limit": 10, "window_ms": 1000, "burst": 20},
			{"name": "daily", "algorithm": "fixed_window", "limit": 5, "window_ms": 86400000}
		],
		"overrides": [
			{"key": "bot-*", "mode": "deny"},
			{"key": "gold", "rules": [{"name": "r", "algorithm": "gcra", "limit": 5, "window_ms": 3600000}]}
		]
	}`, string(text))
	require.Equal(t, p, parse(t, string(text)).Policy(), "the JSON form preserves the whole policy")
}
