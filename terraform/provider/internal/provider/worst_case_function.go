package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

// worstCaseFunction implements provider::sluice::worst_case.
type worstCaseFunction struct{}

var _ function.Function = worstCaseFunction{}

// Metadata implements function.Function.
func (worstCaseFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "worst_case"
}

// Definition implements function.Function.
func (worstCaseFunction) Definition(_ context.Context, _ function.DefinitionRequest,
	resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Returns the maximum number of units that a rule admits in any period as long as its window",
		MarkdownDescription: "Returns the maximum number of units that a rule admits in any period as long as its " +
			"window. The bound depends on the algorithm: 2 × limit for `fixed_window`, around the boundary of " +
			"two windows; the limit for `sliding_window`; 2 × limit − 1 for `sliding_window_counter`; " +
			"burst + limit for `token_bucket` and `gcra`. " +
			"Compare the result with the capacity of the service that the limit protects.",
		Parameters: []function.Parameter{function.DynamicParameter{
			Name: "rule",
			MarkdownDescription: "A rule as in `rules`: an object with `algorithm`, `limit`, `window` " +
				"and, optionally, `burst`.",
		}},
		Return: function.Int64Return{},
	}
}

// Run implements function.Function.
func (worstCaseFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var argument types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &argument); resp.Error != nil {
		return
	}
	rule, err := ruleFrom(argument.UnderlyingValue())
	if err == nil {
		rule, err = validated(rule)
	}
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("The rule %s", err))
		return
	}
	resp.Error = resp.Result.Set(ctx, rule.WorstCase())
}

// ruleFrom converts an object to a rule. The object may omit the name and the optional attributes
// of a rule.
func ruleFrom(value attr.Value) (policy.Rule, error) {
	object, ok := value.(basetypes.ObjectValue)
	if !ok {
		return policy.Rule{}, errors.New("must be an object with algorithm, limit and window")
	}
	given := object.Attributes()
	r := policy.Rule{Name: "rule"}
	for name, v := range given {
		switch name {
		case "algorithm", "limit", "window", "burst", "name":
			if v.IsNull() {
				delete(given, name)
			}
		default:
			return r, fmt.Errorf("has the unknown attribute %s", name)
		}
	}
	algorithm, err := textFrom(given, "algorithm")
	if err != nil {
		return r, err
	}
	window, err := textFrom(given, "window")
	if err != nil {
		return r, err
	}
	r.Algorithm = policy.Algorithm(algorithm)
	if r.Window, err = duration.Parse(window); err != nil {
		return r, fmt.Errorf("has a window that %w", err)
	}
	if r.Limit, err = integerFrom(given, "limit"); err != nil {
		return r, err
	}
	if _, ok := given["burst"]; ok {
		if r.Burst, err = integerFrom(given, "burst"); err == nil && r.Burst == 0 {
			err = errors.New("has a burst of 0; omit it to use the limit")
		}
	}
	return r, err
}

// textFrom returns the attribute, which must be a string.
func textFrom(given map[string]attr.Value, name string) (string, error) {
	text, ok := given[name].(basetypes.StringValue)
	if !ok {
		return "", fmt.Errorf("requires %s, a string", name)
	}
	return text.ValueString(), nil
}

// integerFrom returns the attribute, which must be an integer in the range of int64.
func integerFrom(given map[string]attr.Value, name string) (int64, error) {
	number, ok := given[name].(basetypes.NumberValue)
	if !ok {
		return 0, fmt.Errorf("requires %s, a number", name)
	}
	n, accuracy := number.ValueBigFloat().Int64()
	if accuracy != 0 {
		return 0, fmt.Errorf("has a %s that is not an integer in range", name)
	}
	return n, nil
}

// invalidFields lists the invalid fields of a policy with one rule.
func invalidFields(err error) string {
	found, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	parts := make([]string, len(found.Fields))
	for i, f := range found.Fields {
		name := strings.TrimPrefix(f.Field, "rules[0].")
		parts[i] = name + " " + f.Message
		if name == "window_ms" {
			parts[i] = "window must be 1ms to 366d"
		}
	}
	return strings.Join(parts, "; ")
}
