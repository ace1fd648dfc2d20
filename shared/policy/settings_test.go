package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

func TestFor(t *testing.T) {
	t.Parallel()

	t.Run("override: the exact key takes precedence, then the longest prefix", func(t *testing.T) {
		t.Parallel()
		own := []policy.Rule{rule(policy.GCRA, 1, time.Second, 0)}
		gold := []policy.Rule{rule(policy.GCRA, 100, time.Second, 0)}
		bots := []policy.Rule{rule(policy.GCRA, 2, time.Second, 0)}
		p := policy.Policy{Name: "p", Mode: policy.Enforce, Rules: own, Overrides: []policy.Override{
			{Key: "*", Mode: policy.Shadow},
			{Key: "bot-*", Rules: bots},
			{Key: "bot-good*", Mode: policy.Allow},
			{Key: "bot-good-1", Mode: policy.Deny, Rules: gold},
			{Key: "gold", Rules: gold},
		}}
		for _, tc := range []struct {
			name, key string
			mode      policy.Mode
			rules     []policy.Rule
		}{
			{"the exact key takes precedence over every prefix", "bot-good-1", policy.Deny, gold},
			{"the longest prefix", "bot-good-2", policy.Allow, own},
			{"a key that equals a prefix", "bot-good", policy.Allow, own},
			{"a shorter prefix: its rules, the policy's mode", "bot-x", policy.Enforce, bots},
			{"a key that equals a shorter prefix", "bot-", policy.Enforce, bots},
			{"a key shorter than the prefix", "bot", policy.Shadow, own},
			{"an exact key is not a prefix", "golden", policy.Shadow, own},
			{"an exact key: its rules, the policy's mode", "gold", policy.Enforce, gold},
			{"a key that matches only \"*\"", "anybody", policy.Shadow, own},
			{"a key that ends with a star", "gold*", policy.Shadow, own},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				s := p.For(tc.key)
				require.Equal(t, tc.mode, s.Mode)
				require.Equal(t, tc.rules, s.Rules)
			})
		}
	})

	t.Run("overrides: the order does not matter", func(t *testing.T) {
		t.Parallel()
		for _, overrides := range [][]policy.Override{
			{{Key: "a*", Mode: policy.Deny}, {Key: "ab*", Mode: policy.Allow}, {Key: "abc", Mode: policy.Shadow}},
			{{Key: "abc", Mode: policy.Shadow}, {Key: "ab*", Mode: policy.Allow}, {Key: "a*", Mode: policy.Deny}},
		} {
			p := policy.Policy{Mode: policy.Enforce, Overrides: overrides}
			for key, want := range map[string]policy.Mode{
				"abc": policy.Shadow, "abd": policy.Allow, "ad": policy.Deny, "b": policy.Enforce,
			} {
				require.Equal(t, want, p.For(key).Mode, key)
			}
		}
	})

	t.Run("no override: the policy's own settings", func(t *testing.T) {
		t.Parallel()
		p := valid()
		p.Mode, p.OnUnavailable, p.LocalShare, p.NoDenyCache = policy.Shadow, policy.UnavailableDeny, 0.5, true
		require.Equal(t, policy.Settings{
			Mode: policy.Shadow, Rules: p.Rules, OnUnavailable: policy.UnavailableDeny, LocalShare: 0.5,
			NoDenyCache: true,
		}, p.For("any"))
	})

	t.Run("unset fields: have defaults", func(t *testing.T) {
		t.Parallel()
		p := valid()
		require.Equal(t, policy.Settings{
			Mode: policy.Enforce, Rules: p.Rules, OnUnavailable: policy.UnavailableLocal, LocalShare: 0.1,
		}, p.For("any"))
	})
}
