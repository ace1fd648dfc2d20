package provider

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// expansion turns a model into a policy. A value that is not known yet becomes one that is valid in
// its place, and its field is remembered, so that the rest can be checked all the same.
type expansion struct {
	unknown []string
	fields  fault.Fields
}

// expand returns the normalized policy, whether all of it was known, and its invalid fields, by the
// API's names of them.
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

func isSet(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// note remembers field when v is unknown, and reports that.
func (x *expansion) note(field string, v attr.Value) bool {
	if v.IsUnknown() {
		x.unknown = append(x.unknown, field)
	}
	return v.IsUnknown()
}

func (x *expansion) isUnknown(field string) bool {
	for _, u := range x.unknown {
		if rest, within := strings.CutPrefix(field, u); within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (x *expansion) text(field string, v types.String, instead string) string {
	if x.note(field, v) {
		return instead
	}
	return v.ValueString()
}

// choice is a text that is absent rather than empty.
func (x *expansion) choice(field string, v types.String, instead string) string {
	if isSet(v) && v.ValueString() == "" {
		x.fields.Add(field, "must not be empty: leave it out")
	}
	return x.text(field, v, instead)
}

func (x *expansion) number(field string, v whole.Value, instead int64) int64 {
	if x.note(field, v) {
		return instead
	}
	return v.ValueInt64()
}

// object takes an element of a list, unless it is null or unknown as a whole.
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

// part is an attribute of an object. The framework's own decoding would stop at the first bad
// value, whose attribute says so already.
func part[T attr.Value](o types.Object, name string) T {
	v, _ := o.Attributes()[name].(T)
	return v
}

func (x *expansion) rules(field string, list types.List) []policy.Rule {
	if x.note(field, list) {
		return []policy.Rule{placeholder(0)}
	}
	if list.IsNull() {
		return nil
	}
	rules := make([]policy.Rule, len(list.Elements()))
	for i, element := range list.Elements() {
		at, stand := fmt.Sprintf("%s[%d]", field, i), placeholder(i)
		rules[i] = stand
		o, known := x.object(at, element)
		if !known {
			continue
		}
		burst := part[whole.Value](o, "burst")
		rules[i] = policy.Rule{
			Name: x.text(at+".name", part[types.String](o, "name"), stand.Name),
			Algorithm: policy.Algorithm(x.text(at+".algorithm", part[types.String](o, "algorithm"),
				string(stand.Algorithm))),
			Limit:  x.number(at+".limit", part[whole.Value](o, "limit"), stand.Limit),
			Window: instant.Milliseconds(x.window(at, part[duration.Value](o, "window"))),
			Burst:  x.number(at+".burst", burst, 0),
		}
		if isSet(burst) && burst.ValueInt64() == 0 {
			x.fields.Add(at+".burst", "must be 1 to %d; leave it out for the limit", policy.MaxLimit)
		}
	}
	return rules
}

// placeholder stands for a rule that is not known: it is valid beside every other.
func placeholder(i int) policy.Rule {
	return policy.Rule{
		Name: fmt.Sprintf("unknown:%d", i), Algorithm: policy.TokenBucket, Limit: 1, Window: time.Millisecond,
	}
}

// window is in milliseconds. One that is no duration is refused where its attribute is checked.
func (x *expansion) window(at string, v duration.Value) int64 {
	if x.note(at+".window_ms", v) {
		return 1
	}
	ms, fine := v.Milliseconds()
	if !fine {
		x.unknown = append(x.unknown, at+".window_ms")
		return 1
	}
	return ms
}

func (x *expansion) overrides(list types.List) []policy.Override {
	if x.note("overrides", list) || len(list.Elements()) == 0 {
		return nil
	}
	overrides := make([]policy.Override, len(list.Elements()))
	for i, element := range list.Elements() {
		at := fmt.Sprintf("overrides[%d]", i)
		stand := policy.Override{Key: fmt.Sprintf("unknown:%d", i), Mode: policy.Enforce}
		overrides[i] = stand
		o, known := x.object(at, element)
		if !known {
			continue
		}
		overrides[i] = policy.Override{
			Key:   x.text(at+".key", part[types.String](o, "key"), stand.Key),
			Mode:  policy.Mode(x.choice(at+".mode", part[types.String](o, "mode"), string(stand.Mode))),
			Rules: x.rules(at+".rules", part[types.List](o, "rules")),
		}
	}
	return overrides
}
