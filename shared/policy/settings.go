package policy

import (
	"strings"

	"github.com/sluicehq/sluice/shared/fault"
)

// Settings are the parts of a policy that apply to the checks of one key.
type Settings struct {
	Mode          Mode
	Rules         []Rule
	OnUnavailable OnUnavailable
	LocalShare    float64
	NoDenyCache   bool
}

// For returns the settings that apply to key, with defaults filled in. At most one override
// applies: the override for exactly that key, otherwise the override with the longest matching
// prefix.
func (p *Policy) For(key string) Settings {
	s := Settings{
		Mode: p.Mode, Rules: p.Rules, OnUnavailable: p.OnUnavailable, LocalShare: p.LocalShare,
		NoDenyCache: p.NoDenyCache,
	}
	if o := p.override(key); o != nil {
		if o.Mode != "" {
			s.Mode = o.Mode
		}
		if o.Rules != nil {
			s.Rules = o.Rules
		}
	}
	s.setDefaults()

	return s
}

// override returns the override that applies to key, or nil.
func (p *Policy) override(key string) *Override {
	var best *Override
	for i := range p.Overrides {
		o := &p.Overrides[i]
		if o.Key == key {
			return o
		}
		prefix, isPrefix := strings.CutSuffix(o.Key, "*")
		if isPrefix && strings.HasPrefix(key, prefix) && (best == nil || len(o.Key) > len(best.Key)) {
			best = o
		}
	}

	return best
}

func (s *Settings) setDefaults() {
	if s.Mode == "" {
		s.Mode = Enforce
	}
	if s.OnUnavailable == "" {
		s.OnUnavailable = UnavailableLocal
	}
	if s.LocalShare == 0 {
		s.LocalShare = DefaultLocalShare
	}
}

// Validate adds every invalid setting to f, under its JSON name.
func (s *Settings) Validate(f *fault.Fields) {
	checkMode(f, "mode", s.Mode)
	switch s.OnUnavailable {
	case UnavailableLocal, UnavailableAllow, UnavailableDeny:
	default:
		f.Add("on_unavailable", `must be "local", "allow" or "deny"`)
	}
	if !(s.LocalShare > 0 && s.LocalShare <= 1) { // also rejects NaN
		f.Add("local_share", "must be over 0 and at most 1")
	}
	checkRules(f, "rules", s.Rules)
}
