package policy

import "strings"

// Match returns what holds for a key: an override of exactly that key, else the one with the
// longest prefix, else the policy itself.
func (p *Policy) Match(key string) (Mode, []Rule) {
	best := -1
	for i := range p.Overrides {
		o := &p.Overrides[i]
		if o.Key == key {
			best = i
			break
		}
		prefix, isPrefix := strings.CutSuffix(o.Key, "*")
		if isPrefix && strings.HasPrefix(key, prefix) && (best < 0 || len(o.Key) > len(p.Overrides[best].Key)) {
			best = i
		}
	}
	mode, rules := p.Mode, p.Rules
	if best < 0 {
		return mode, rules
	}
	if o := &p.Overrides[best]; o.Mode != "" || o.Rules != nil {
		if o.Mode != "" {
			mode = o.Mode
		}
		if o.Rules != nil {
			rules = o.Rules
		}
	}
	return mode, rules
}
