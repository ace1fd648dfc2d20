package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// rateFunction is provider::sluice::rate.
type rateFunction struct{}

var _ function.Function = rateFunction{}

// Metadata implements function.Function.
func (rateFunction) Metadata(_ context.Context, _ function.MetadataRequest, answer *function.MetadataResponse) {
	answer.Name = "rate"
}

// Definition implements function.Function.
func (rateFunction) Definition(_ context.Context, _ function.DefinitionRequest, answer *function.DefinitionResponse) {
	answer.Definition = function.Definition{
		Summary: "A rule from a rate such as \"100/m\"",
		MarkdownDescription: "Turns a rate, `100/m`, `5/s` or `1000/15m`, into a rule for `rules`: a `gcra`, which spaces what it admits and lets the limit pass at once. " +
			"The rule is named after its window, `per-1m`, so that another limit goes on with the same count. " +
			"Use `merge` for other parts: `merge(provider::sluice::rate(\"100/m\"), { algorithm = \"sliding_window\" })`.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "rate",
			MarkdownDescription: "A limit, a slash, and a unit (`s`, `m`, `h`, `d`, `w`) or a length of time (`30s`, `1h30m`).",
		}},
		Return: function.ObjectReturn{AttributeTypes: ruleType().AttrTypes},
	}
}

// Run implements function.Function.
func (rateFunction) Run(ctx context.Context, request function.RunRequest, answer *function.RunResponse) {
	var text string
	if answer.Error = request.Arguments.Get(ctx, &text); answer.Error != nil {
		return
	}
	rule, err := parseRate(text)
	if err != nil {
		answer.Error = function.NewArgumentFuncError(0, fmt.Sprintf("The rate %q %s", text, err))
		return
	}
	answer.Error = answer.Result.Set(ctx, ruleModel{
		Name: types.StringValue(rule.Name), Algorithm: types.StringValue(string(rule.Algorithm)),
		Limit:  whole.Of(rule.Limit),
		Window: duration.Of(rule.Window.Milliseconds()), Burst: whole.Null(),
	})
}

var rate = regexp.MustCompile(`^([0-9]{1,10})/(.+)$`)

// parseRate reads a limit, a slash, and a length of time whose number may be left out when it is 1.
func parseRate(text string) (policy.Rule, error) {
	match := rate.FindStringSubmatch(text)
	if match == nil {
		return policy.Rule{}, errors.New(`must be a limit, a slash and a time, such as "100/m", "5/s" or "1000/15m"`)
	}
	limit, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return policy.Rule{}, errors.New("has a limit that is no number")
	}
	window := match[2]
	if window[0] < '0' || window[0] > '9' {
		window = "1" + window
	}
	ms, err := duration.Parse(window)
	if err != nil {
		return policy.Rule{},
			errors.New(`has a time that is none: it must be s, m, h, d, w, or a length such as 30s or 1h30m`)
	}
	return checked(policy.Rule{
		Name: "per-" + duration.Format(ms), Algorithm: policy.GCRA, Limit: limit, Window: instant.Milliseconds(ms),
	})
}

// checked returns the rule if it is valid, else what is wrong with it.
func checked(r policy.Rule) (policy.Rule, error) {
	_, err := policy.Policy{Name: "checked", Rules: []policy.Rule{r}}.Normalize()
	if err != nil {
		return policy.Rule{}, errors.New("is not a valid rule: " + invalidPart(err))
	}
	return r, nil
}
