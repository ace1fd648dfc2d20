package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// rateFunction implements provider::sluice::rate.
type rateFunction struct{}

var _ function.Function = rateFunction{}

// Metadata implements function.Function.
func (rateFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "rate"
}

// Definition implements function.Function.
func (rateFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Converts a rate such as \"100/m\" to a rule",
		MarkdownDescription: "Converts a rate, such as `100/m`, `5/s` or `1000/15m`, to a rule for `rules`. " +
			"The rule's algorithm is `gcra` with a burst of the limit. " +
			"The rule's name contains only the window, such as `per-1m`, so a change of the limit keeps the count. " +
			"Change other attributes with `merge`: " +
			"`merge(provider::sluice::rate(\"100/m\"), { algorithm = \"sliding_window\" })`.",
		Parameters: []function.Parameter{function.StringParameter{
			Name: "rate",
			MarkdownDescription: "A limit, a slash, and a unit (`s`, `m`, `h`, `d`, `w`) " +
				"or a length of time (`30s`, `1h30m`).",
		}},
		Return: function.ObjectReturn{AttributeTypes: ruleType().AttrTypes},
	}
}

// Run implements function.Function.
func (rateFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	rule, err := parseRate(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("The rate %q %s", text, err))
		return
	}
	resp.Error = resp.Result.Set(ctx, ruleModel{
		Name: types.StringValue(rule.Name), Algorithm: types.StringValue(string(rule.Algorithm)),
		Limit:  integer.Of(rule.Limit),
		Window: duration.Of(rule.Window), Burst: integer.Null(),
	})
}

var rate = regexp.MustCompile(`^([0-9]{1,10})/(.+)$`)

// parseRate parses a limit, a slash and a length of time. A unit without a number means one unit:
// "m" is "1m".
func parseRate(text string) (policy.Rule, error) {
	match := rate.FindStringSubmatch(text)
	if match == nil {
		return policy.Rule{}, errors.New(`must be a limit, a slash and a time, such as "100/m", "5/s" or "1000/15m"`)
	}
	limit, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return policy.Rule{}, errors.New("has an invalid limit")
	}
	window := match[2]
	if window[0] < '0' || window[0] > '9' {
		window = "1" + window
	}
	length, err := duration.Parse(window)
	if err != nil {
		return policy.Rule{}, errors.New("has an invalid time; it must be s, m, h, d, w, " +
			"or a length such as 30s or 1h30m")
	}
	return validated(policy.Rule{
		Name: "per-" + duration.Format(length), Algorithm: policy.GCRA, Limit: limit, Window: length,
	})
}

// validated returns the rule, or an error that lists its invalid fields.
func validated(r policy.Rule) (policy.Rule, error) {
	_, err := policy.Policy{Name: "rate", Rules: []policy.Rule{r}}.Normalize()
	if err != nil {
		return policy.Rule{}, errors.New("is not a valid rule: " + invalidFields(err))
	}
	return r, nil
}
