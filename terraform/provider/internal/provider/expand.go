package provider

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// expansion converts a model to a policy. To validate the known values before apply, it replaces
// each unknown value with a valid value and records the field.
type expansion struct {
	unknown []string     // fields whose values were replaced
	fields  fault.Fields // invalid fields that Normalize does not report
}

// expand returns the normalized policy. The result known reports whether all values are known. The
// result invalid lists the invalid fields by their names in the API. It never contains a field
// whose value is unknown.
func (m *policyModel) expand() (p policy.Policy, known bool, invalid fault.Fields) {
	var x expansion
	p = policy.Policy{
		Name: x.text("name", m.Name, "unknown"), Description: x.text("description", m.Description, ""),
		Mode:          policy.Mode(x.choice("mode", m.Mode, "")),
		OnUnavailable: policy.OnUnavailable(x.choice("on_unavailable", m.OnUnavailable, "")),
		LocalShare:    m.LocalShare.ValueFloat64(), NoDenyCache: m.NoDenyCache.ValueBool(),
		Rules: x.rules("rules", m.Rules), Overrides: x.overrides(m.Overrides),
	}
	x.note("local_share", m.LocalShare)
	x.note("no_deny_cache", m.NoDenyCache)
	if isSet(m.LocalShare) && p.LocalShare == 0 {
		x.fields.Add("local_share", "must be over 0 and at most 1")
	}
	p, err := p.Normalize()
	if found, bad := errors.AsType[*fault.Error](x.fields.Join(err)); bad {
		for _, f := range found.Fields {
			if !x.isUnknown(f.Field) {
				invalid = append(invalid, f)
			}
		}
	}
	return p, len(x.unknown) == 0, invalid
}

// isSet reports whether v is neither null nor unknown.
func isSet(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// note reports whether v is unknown. If so, it records the field.
func (x *expansion) note(field string, v attr.Value) bool {
	if v.IsUnknown() {
		x.unknown = append(x.unknown, field)
	}
	return v.IsUnknown()
}

// isUnknown reports whether the field, or a field that contains it, is unknown.
func (x *expansion) isUnknown(field string) bool {
	for _, u := range x.unknown {
		rest, found := strings.CutPrefix(field, u)
		if found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// text returns the value, or the replacement if it is unknown.
func (x *expansion) text(field string, v types.String, replacement string) string {
	if x.note(field, v) {
		return replacement
	}
	return v.ValueString()
}

// choice is like text, but records an error if the value is an empty string: a configuration must
// omit the field instead.
func (x *expansion) choice(field string, v types.String, replacement string) string {
	if isSet(v) && v.ValueString() == "" {
		x.fields.Add(field, "must not be empty; omit it instead")
	}
	return x.text(field, v, replacement)
}

// number returns the value, or the replacement if it is unknown.
func (x *expansion) number(field string, v integer.Value, replacement int64) int64 {
	if x.note(field, v) {
		return replacement
	}
	return v.ValueInt64()
}

// object returns an element of a list. It returns false if the element is null or unknown.
func (x *expansion) object(at string, element attr.Value) (types.Object, bool) {
	if x.note(at, element) {
		return types.Object{}, false
	}
	object, ok := element.(types.Object)
	if !ok || object.IsNull() {
		x.fields.Add(at, "must not be null")
		return types.Object{}, false
	}
	return object, true
}

// attribute returns an attribute of the object, or the zero value if the attribute has a different
// type. It replaces the framework's decoding of objects, which would stop at the first invalid
// value.
func attribute[T attr.Value](o types.Object, name string) T {
	v, _ := o.Attributes()[name].(T)
	return v
}

// rules returns the rules of a list. An unknown rule becomes a placeholder; an unknown list becomes
// one placeholder.
func (x *expansion) rules(field string, list types.List) []policy.Rule {
	if x.note(field, list) {
		return []policy.Rule{placeholder(0)}
	}
	if list.IsNull() {
		return nil
	}
	rules := make([]policy.Rule, len(list.Elements()))
	for i, element := range list.Elements() {
		at, replacement := fmt.Sprintf("%s[%d]", field, i), placeholder(i)
		rules[i] = replacement
		o, known := x.object(at, element)
		if !known {
			continue
		}
		algorithm := x.text(at+".algorithm", attribute[types.String](o, "algorithm"), string(replacement.Algorithm))
		burst := attribute[integer.Value](o, "burst")
		rules[i] = policy.Rule{
			Name:      x.text(at+".name", attribute[types.String](o, "name"), replacement.Name),
			Algorithm: policy.Algorithm(algorithm),
			Limit:     x.number(at+".limit", attribute[integer.Value](o, "limit"), replacement.Limit),
			Window:    x.window(at+".window_ms", attribute[duration.Value](o, "window")),
			Burst:     x.number(at+".burst", burst, 0),
		}
		if isSet(burst) && burst.ValueInt64() == 0 {
			x.fields.Add(at+".burst", "must be 1 to %d; omit it to use the limit", policy.MaxLimit)
		}
	}
	return rules
}

// placeholder returns a valid rule for the position i. Its name differs from all names that a user
// can write.
func placeholder(i int) policy.Rule {
	return policy.Rule{
		Name: fmt.Sprintf("unknown:%d", i), Algorithm: policy.TokenBucket, Limit: 1, Window: time.Millisecond,
	}
}

// window returns the length of a window. It records a text that is not a duration as unknown,
// because the attribute's type already reports the error.
func (x *expansion) window(field string, v duration.Value) time.Duration {
	if x.note(field, v) {
		return time.Millisecond
	}
	length, ok := v.Duration()
	if !ok {
		x.unknown = append(x.unknown, field)
		return time.Millisecond
	}
	return length
}

// overrides returns the overrides of a list. An unknown override becomes a placeholder; an unknown
// list becomes nil.
func (x *expansion) overrides(list types.List) []policy.Override {
	if x.note("overrides", list) || len(list.Elements()) == 0 {
		return nil
	}
	overrides := make([]policy.Override, len(list.Elements()))
	for i, element := range list.Elements() {
		at := fmt.Sprintf("overrides[%d]", i)
		replacement := policy.Override{Key: fmt.Sprintf("unknown:%d", i), Mode: policy.Enforce}
		overrides[i] = replacement
		o, known := x.object(at, element)
		if !known {
			continue
		}
		overrides[i] = policy.Override{
			Key:   x.text(at+".key", attribute[types.String](o, "key"), replacement.Key),
			Mode:  policy.Mode(x.choice(at+".mode", attribute[types.String](o, "mode"), string(replacement.Mode))),
			Rules: x.rules(at+".rules", attribute[types.List](o, "rules")),
		}
	}
	return overrides
}
