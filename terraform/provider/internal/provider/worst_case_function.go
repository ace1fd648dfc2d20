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
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

// worstCaseFunction is provider::sluice::worst_case.
type worstCaseFunction struct{}

var _ function.Function = worstCaseFunction{}

// Metadata implements function.Function.
func (worstCaseFunction) Metadata(_ context.Context, _ function.MetadataRequest, answer *function.MetadataResponse) {
	answer.Name = "worst_case"
}

// Definition implements function.Function.
func (worstCaseFunction) Definition(_ context.Context, _ function.DefinitionRequest,
	answer *function.DefinitionResponse) {
	answer.Definition = function.Definition{
		Summary: "The most that any window's length can admit under a rule",
		MarkdownDescription: "The most that a rule can admit in any stretch of time as long as its window, by the bound of its algorithm: `fixed_window` 2 × limit, at the border " +
			"of two windows; `sliding_window` the limit; `sliding_window_counter` 2 × limit − 1; `token_bucket` and `gcra` burst + limit. Use it to hold a limit against what " +
			"the thing behind it can bear.",
		Parameters: []function.Parameter{function.DynamicParameter{
			Name:                "rule",
			MarkdownDescription: "A rule as in `rules`: an object with `algorithm`, `limit`, `window` and, if need be, `burst`.",
		}},
		Return: function.Int64Return{},
	}
}

// Run implements function.Function.
func (worstCaseFunction) Run(ctx context.Context, request function.RunRequest, answer *function.RunResponse) {
	var argument types.Dynamic
	if answer.Error = request.Arguments.Get(ctx, &argument); answer.Error != nil {
		return
	}
	rule, err := ruleFrom(argument.UnderlyingValue())
	if err == nil {
		rule, err = checked(rule)
	}
	if err != nil {
		answer.Error = function.NewArgumentFuncError(0, fmt.Sprintf("The rule %s", err))
		return
	}
	answer.Error = answer.Result.Set(ctx, rule.WorstCase())
}

// ruleFrom reads a rule of an object that may lack what a rule may lack; a name is not needed here.
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
			return r, fmt.Errorf("has no attribute %s", name)
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
	ms, err := duration.Parse(window)
	if err != nil {
		return r, fmt.Errorf("has a window that %w", err)
	}
	r.Window = instant.Milliseconds(ms)
	if r.Limit, err = wholeFrom(given, "limit"); err != nil {
		return r, err
	}
	if _, has := given["burst"]; has {
		if r.Burst, err = wholeFrom(given, "burst"); err == nil && r.Burst == 0 {
			err = errors.New("has a burst of 0: leave it out for the limit")
		}
	}
	return r, err
}

func textFrom(given map[string]attr.Value, name string) (string, error) {
	text, ok := given[name].(basetypes.StringValue)
	if !ok {
		return "", fmt.Errorf("needs %s, a string", name)
	}
	return text.ValueString(), nil
}

func wholeFrom(given map[string]attr.Value, name string) (int64, error) {
	number, ok := given[name].(basetypes.NumberValue)
	if !ok {
		return 0, fmt.Errorf("needs %s, a number", name)
	}
	n, accuracy := number.ValueBigFloat().Int64()
	if accuracy != 0 {
		return 0, fmt.Errorf("has a %s that is not a whole number in range", name)
	}
	return n, nil
}

// invalidPart says what is wrong with the one rule of a policy.
func invalidPart(err error) string {
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
