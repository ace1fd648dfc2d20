package policy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

func rule(algorithm policy.Algorithm, limit int64, window time.Duration, burst int64) policy.Rule {
	return policy.Rule{Name: "r", Algorithm: algorithm, Limit: limit, Window: window, Burst: burst}
}

func valid() policy.Policy {
	return policy.Policy{Name: "login", Rules: []policy.Rule{rule(policy.TokenBucket, 10, time.Second, 20)}}
}

// badFields returns the names of the invalid fields of err, in order, or nil if err is nil.
func badFields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.ErrorIs(t, err, policy.ErrInvalid)
	var names []string
	for _, field := range f.Fields {
		require.NotEmpty(t, field.Message, field.Field)
		names = append(names, field.Field)
	}
	return names
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	t.Run("unset fields have defaults", func(t *testing.T) {
		t.Parallel()
		p, err := valid().Normalize()
		require.NoError(t, err)
		require.Equal(t, policy.Enforce, p.Mode)
		require.Equal(t, policy.UnavailableLocal, p.OnUnavailable)
		require.InDelta(t, 0.1, p.LocalShare, 0)
		again, err := p.Normalize()
		require.NoError(t, err)
		require.Equal(t, p, again, "normalizing again changes nothing")
	})

	t.Run("the error names every invalid field", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			spoil func(*policy.Policy)
			want  []string
		}{
			"a policy without a name": {func(p *policy.Policy) { p.Name = "" }, []string{"name"}},
			"a name with a slash":     {func(p *policy.Policy) { p.Name = "a/b" }, []string{"name"}},
			"a description of 1025 bytes": {func(p *policy.Policy) {
				p.Description = strings.Repeat("x", 1025)
			}, []string{"description"}},
			"an unknown mode": {func(p *policy.Policy) { p.Mode = "maybe" }, []string{"mode"}},
			"an unknown fallback": {func(p *policy.Policy) {
				p.OnUnavailable = "hope"
			}, []string{"on_unavailable"}},
			"a negative share": {func(p *policy.Policy) { p.LocalShare = -0.1 }, []string{"local_share"}},
			"a share over 1":   {func(p *policy.Policy) { p.LocalShare = 1.01 }, []string{"local_share"}},
			"a share that is not a number": {func(p *policy.Policy) {
				p.LocalShare = math.NaN()
			}, []string{"local_share"}},
			"no rules":   {func(p *policy.Policy) { p.Rules = nil }, []string{"rules"}},
			"nine rules": {func(p *policy.Policy) { p.Rules = distinct(9) }, []string{"rules"}},
			"two rules of one name": {func(p *policy.Policy) {
				p.Rules = append(p.Rules, p.Rules[0])
			}, []string{"rules[1].name"}},
			"a rule without a name": {func(p *policy.Policy) {
				p.Rules[0].Name = ""
			}, []string{"rules[0].name"}},
			"an unknown algorithm": {func(p *policy.Policy) {
				p.Rules[0].Algorithm = "leaky"
			}, []string{"rules[0].algorithm"}},
			"a limit of zero": {func(p *policy.Policy) {
				p.Rules[0].Limit = 0
			}, []string{"rules[0].limit"}},
			"a negative limit": {func(p *policy.Policy) {
				p.Rules[0].Limit = -1
			}, []string{"rules[0].limit"}},
			"a limit over a billion": {func(p *policy.Policy) {
				p.Rules[0].Limit = 1_000_000_001
			}, []string{"rules[0].limit"}},
			"a sliding_window limit over 100 000": {func(p *policy.Policy) {
				p.Rules[0] = rule(policy.SlidingWindow, 100_001, time.Second, 0)
			}, []string{"rules[0].limit"}},
			"a window of zero": {func(p *policy.Policy) {
				p.Rules[0].Window = 0
			}, []string{"rules[0].window_ms"}},
			"a window of a microsecond": {func(p *policy.Policy) {
				p.Rules[0].Window = time.Microsecond
			}, []string{"rules[0].window_ms"}},
			"a window with a fraction of a millisecond": {func(p *policy.Policy) {
				p.Rules[0].Window = time.Second + time.Microsecond
			}, []string{"rules[0].window_ms"}},
			"a window of 366 days and 1 ms": {func(p *policy.Policy) {
				p.Rules[0].Window = 366*day + time.Millisecond
			}, []string{"rules[0].window_ms"}},
			"a negative burst": {func(p *policy.Policy) {
				p.Rules[0].Burst = -1
			}, []string{"rules[0].burst"}},
			"a burst over a billion": {func(p *policy.Policy) {
				p.Rules[0].Burst = 1_000_000_001
			}, []string{"rules[0].burst"}},
			"a burst on a fixed_window rule": {func(p *policy.Policy) {
				p.Rules[0] = rule(policy.FixedWindow, 10, time.Second, 20)
			}, []string{"rules[0].burst"}},
			"limit times window overflows": {func(p *policy.Policy) {
				p.Rules[0] = rule(policy.GCRA, 1_000_000_000, 366*day-time.Millisecond, 0)
			}, []string{"rules[0].limit"}},
			"an override without a key": {override(policy.Override{Mode: policy.Deny}),
				[]string{"overrides[0].key"}},
			"an override's key of 513 bytes": {override(policy.Override{Key: strings.Repeat("k", 513),
				Mode: policy.Deny}), []string{"overrides[0].key"}},
			"an override's key of broken UTF-8": {override(policy.Override{Key: "\xff", Mode: policy.Deny}),
				[]string{"overrides[0].key"}},
			"a star inside a key": {override(policy.Override{Key: "a*b", Mode: policy.Deny}),
				[]string{"overrides[0].key"}},
			"two stars": {override(policy.Override{Key: "a**", Mode: policy.Deny}),
				[]string{"overrides[0].key"}},
			"an override without mode and rules": {override(policy.Override{Key: "a"}), []string{"overrides[0]"}},
			"an unknown mode in an override": {override(policy.Override{Key: "a", Mode: "maybe"}),
				[]string{"overrides[0].mode"}},
			"an empty list of rules in an override": {override(policy.Override{Key: "a", Rules: []policy.Rule{}}),
				[]string{"overrides[0].rules"}},
			"an invalid rule in an override": {override(policy.Override{Key: "a",
				Rules: []policy.Rule{rule(policy.GCRA, 0, 0, 0)}}),
				[]string{"overrides[0].rules[0].limit", "overrides[0].rules[0].window_ms"}},
			"two overrides of one key": {override(policy.Override{Key: "a*", Mode: policy.Deny},
				policy.Override{Key: "b", Mode: policy.Deny}, policy.Override{Key: "a*", Mode: policy.Allow}),
				[]string{"overrides[2].key"}},
			"a thousand and one overrides": {func(p *policy.Policy) {
				p.Overrides = tenants(1001, 1)
			}, []string{"overrides"}},
			"more JSON than a DynamoDB item can hold": {func(p *policy.Policy) {
				p.Overrides = tenants(1000, 500)
			}, []string{"overrides"}},
			"several fields": {
				func(p *policy.Policy) {
					p.Mode, p.OnUnavailable, p.LocalShare = "maybe", "hope", 2
					p.Rules[0] = policy.Rule{}
				},
				[]string{"mode", "on_unavailable", "local_share", "rules[0].name", "rules[0].algorithm",
					"rules[0].limit", "rules[0].window_ms"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := valid()
				tc.spoil(&p)
				_, err := p.Normalize()
				require.Equal(t, tc.want, badFields(t, err), "%v", err)
			})
		}
	})

	t.Run("values at the ends of the ranges are valid", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string]func(*policy.Policy){
			"a window of a millisecond": func(p *policy.Policy) { p.Rules[0].Window = time.Millisecond },
			"a window of 366 days":      func(p *policy.Policy) { p.Rules[0].Window = 366 * day },
			"a limit of one": func(p *policy.Policy) {
				p.Rules[0] = rule(policy.GCRA, 1, time.Millisecond, 1)
			},
			"a billion in a second": func(p *policy.Policy) {
				p.Rules[0] = rule(policy.GCRA, 1_000_000_000, time.Second, 0)
			},
			"a sliding_window limit of 100 000": func(p *policy.Policy) {
				p.Rules[0] = rule(policy.SlidingWindow, 100_000, 366*day, 0)
			},
			"eight rules":             func(p *policy.Policy) { p.Rules = distinct(8) },
			"a burst below the limit": func(p *policy.Policy) { p.Rules[0].Burst = 1 },
			"a share of 1":            func(p *policy.Policy) { p.LocalShare = 1 },
			"a star alone":            override(policy.Override{Key: "*", Mode: policy.Shadow}),
			"a key of 512 bytes":      override(policy.Override{Key: strings.Repeat("k", 512), Mode: policy.Deny}),
			"a thousand overrides":    func(p *policy.Policy) { p.Overrides = tenants(1000, 1) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := valid()
				change(&p)
				_, err := p.Normalize()
				require.NoError(t, err)
			})
		}
	})
}

func distinct(n int) []policy.Rule {
	rules := make([]policy.Rule, n)
	for i := range rules {
		rules[i] = rule(policy.FixedWindow, 1, time.Millisecond, 0)
		rules[i].Name = fmt.Sprintf("r%d", i)
	}
	return rules
}

func override(overrides ...policy.Override) func(*policy.Policy) {
	return func(p *policy.Policy) { p.Overrides = overrides }
}

// tenants returns n overrides. Each key is a number, followed by "x" repeated padding times.
func tenants(n, padding int) []policy.Override {
	out := make([]policy.Override, n)
	for i := range out {
		out[i] = policy.Override{Key: fmt.Sprintf("%d", i) + strings.Repeat("x", padding), Mode: policy.Deny}
	}
	return out
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		"": false, "k": true, "ü {a} *\n\x00": true, strings.Repeat("k", 512): true, strings.Repeat("k", 513): false,
		strings.Repeat("é", 257): false, "\xc3": false,
	} {
		var f fault.Fields
		policy.CheckKey(&f, "key", key)
		require.Equal(t, ok, f.Err() == nil, "%.20q, %d bytes", key, len(key))
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	s := policy.Stored{Policy: valid(), Version: 3}
	require.Regexp(t, `^"3-[0-9a-f]{16}"$`, s.ETag())
	same := s
	same.UpdatedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, s.ETag(), same.ETag())
	newer, other := s, s
	newer.Version++
	other.Mode = policy.Deny
	require.NotEqual(t, s.ETag(), newer.ETag())
	require.NotEqual(t, s.ETag(), other.ETag())
}
