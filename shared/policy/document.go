package policy

import (
	"fmt"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

// Document is the JSON form of a policy. Optional members are pointers, to distinguish an explicit
// "" or 0 from an absent member. JSON null is the same as an absent member.
type Document struct {
	Name          *string            `json:"name,omitempty"`
	Description   string             `json:"description,omitempty"`
	Mode          *Mode              `json:"mode,omitempty"`
	OnUnavailable *OnUnavailable     `json:"on_unavailable,omitempty"`
	LocalShare    *float64           `json:"local_share,omitempty"`
	NoDenyCache   bool               `json:"no_deny_cache,omitempty"`
	Rules         []RuleDocument     `json:"rules"`
	Overrides     []OverrideDocument `json:"overrides,omitempty"`
}

// RuleDocument is the JSON form of a [Rule].
type RuleDocument struct {
	Name      string    `json:"name"`
	Algorithm Algorithm `json:"algorithm"`
	Limit     int64     `json:"limit"`
	WindowMS  int64     `json:"window_ms"`
	Burst     *int64    `json:"burst,omitempty"`
}

// OverrideDocument is the JSON form of an [Override].
type OverrideDocument struct {
	Key   string         `json:"key"`
	Mode  *Mode          `json:"mode,omitempty"`
	Rules []RuleDocument `json:"rules,omitzero"`
}

// Document returns the JSON form of p. Zero values become absent members.
func (p Policy) Document() Document {
	d := Document{
		Name: present(p.Name), Description: p.Description, Mode: present(p.Mode),
		OnUnavailable: present(p.OnUnavailable), LocalShare: present(p.LocalShare), NoDenyCache: p.NoDenyCache,
		Rules: documents(p.Rules),
	}
	for _, o := range p.Overrides {
		d.Overrides = append(d.Overrides,
			OverrideDocument{Key: o.Key, Mode: present(o.Mode), Rules: documents(o.Rules)})
	}

	return d
}

// Policy returns the policy that d describes, with the defaults for absent members. It does not
// validate; see [Document.Normalize].
func (d Document) Policy() Policy {
	p := Policy{
		Name: given(d.Name, ""), Description: d.Description, Mode: given(d.Mode, Enforce),
		OnUnavailable: given(d.OnUnavailable, UnavailableLocal), LocalShare: given(d.LocalShare, DefaultLocalShare),
		NoDenyCache: d.NoDenyCache, Rules: rulesOf(d.Rules),
	}
	for _, o := range d.Overrides {
		p.Overrides = append(p.Overrides, Override{Key: o.Key, Mode: given(o.Mode, ""), Rules: rulesOf(o.Rules)})
	}

	return p
}

// Normalize returns the policy that d describes, with the defaults for absent members. It rejects
// explicit values that are out of range, including "" and 0. Errors: [ErrInvalid], which names
// every invalid field.
func (d Document) Normalize() (Policy, error) {
	var f fault.Fields
	checkBursts(&f, "rules", d.Rules)
	for i, o := range d.Overrides {
		at := fmt.Sprintf("overrides[%d]", i)
		if o.Mode != nil && *o.Mode == "" {
			checkMode(&f, at+".mode", *o.Mode)
		}
		checkBursts(&f, at+".rules", o.Rules)
	}

	p := d.Policy()

	return p, f.Join(p.Validate())
}

// checkBursts rejects an explicit burst of 0. In a [Rule], 0 means that the burst is absent.
func checkBursts(f *fault.Fields, field string, rules []RuleDocument) {
	for i, r := range rules {
		if r.Burst != nil && *r.Burst == 0 {
			f.Add(fmt.Sprintf("%s[%d].burst", field, i), burstRange, MaxLimit)
		}
	}
}

// rulesOf converts rules. It returns nil for nil, and an empty list for an empty list: an override
// can omit its rules, but an explicit empty list is invalid.
func rulesOf(documents []RuleDocument) []Rule {
	if documents == nil {
		return nil
	}

	rules := make([]Rule, len(documents))
	for i, d := range documents {
		rules[i] = Rule{
			Name: d.Name, Algorithm: d.Algorithm, Limit: d.Limit, Window: instant.Milliseconds(d.WindowMS),
			Burst: given(d.Burst, 0),
		}
	}

	return rules
}

func documents(rules []Rule) []RuleDocument {
	if rules == nil {
		return nil
	}

	out := make([]RuleDocument, len(rules))
	for i, r := range rules {
		out[i] = RuleDocument{
			Name: r.Name, Algorithm: r.Algorithm, Limit: r.Limit, WindowMS: r.Window.Milliseconds(),
			Burst: present(r.Burst),
		}
	}

	return out
}

// given returns *v, or the default (the second argument) if v is nil.
func given[T any](v *T, absent T) T {
	if v == nil {
		return absent
	}

	return *v
}

// present returns a pointer to v, or nil for the zero value.
func present[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}

	return &v
}
