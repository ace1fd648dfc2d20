package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/policy"
)

func TestAnOverrideMatchesExactlyThenByTheLongestPrefix(t *testing.T) {
	t.Parallel()
	ours := []policy.Rule{rule(policy.GCRA, 1, 1000, 0)}
	gold, bots := []policy.Rule{rule(policy.GCRA, 100, 1000, 0)}, []policy.Rule{rule(policy.GCRA, 2, 1000, 0)}
	p := policy.Policy{Name: "p", Mode: policy.Enforce, Rules: ours, Overrides: []policy.Override{
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
		{"the exact key before every prefix", "bot-good-1", policy.Deny, gold},
		{"the longest prefix", "bot-good-2", policy.Allow, ours},
		{"a prefix that is the whole key", "bot-good", policy.Allow, ours},
		{"a shorter prefix: its rules, the policy's mode", "bot-x", policy.Enforce, bots},
		{"a prefix includes the key that ends with it", "bot-", policy.Enforce, bots},
		{"almost the prefix is another key", "bot", policy.Shadow, ours},
		{"an exact key is no prefix", "golden", policy.Shadow, ours},
		{"an exact key: its rules, the policy's mode", "gold", policy.Enforce, gold},
		{"everything else is the star's", "anybody", policy.Shadow, ours},
		{"a key may end in a star itself", "gold*", policy.Shadow, ours},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			mode, rules := p.Match(tc.key)
			require.Equal(t, tc.mode, mode)
			require.Equal(t, tc.rules, rules)
		})
	}
}

func TestTheOrderOfOverridesDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, overrides := range [][]policy.Override{
		{{Key: "a*", Mode: policy.Deny}, {Key: "ab*", Mode: policy.Allow}, {Key: "abc", Mode: policy.Shadow}},
		{{Key: "abc", Mode: policy.Shadow}, {Key: "ab*", Mode: policy.Allow}, {Key: "a*", Mode: policy.Deny}},
	} {
		p := policy.Policy{Mode: policy.Enforce, Overrides: overrides}
		for key, want := range map[string]policy.Mode{"abc": policy.Shadow, "abd": policy.Allow, "ad": policy.Deny,
			"b": policy.Enforce} {
			mode, _ := p.Match(key)
			require.Equal(t, want, mode, key)
		}
	}
}

func TestAPolicyWithoutOverridesHoldsForEveryKey(t *testing.T) {
	t.Parallel()
	p := valid()
	p.Mode = policy.Shadow
	mode, rules := p.Match("any")
	require.Equal(t, policy.Shadow, mode)
	require.Equal(t, p.Rules, rules)
}
