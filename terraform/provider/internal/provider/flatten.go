package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// store fills the model with what the API stores. A list of overrides that was empty rather than
// absent stays so: the API knows no difference.
func (m *policyModel) store(ctx context.Context, p client.StoredPolicy) diag.Diagnostics {
	var diags diag.Diagnostics
	m.Name, m.Description = types.StringValue(p.Name), types.StringValue(p.Description)
	m.Mode, m.OnUnavailable = types.StringValue(string(p.Mode)), types.StringValue(string(p.OnUnavailable))
	m.LocalShare, m.NoDenyCache = types.Float64Value(p.LocalShare), types.BoolValue(p.NoDenyCache)
	m.Rules = rulesOf(ctx, p.Rules, &diags)
	if len(p.Overrides) > 0 || !isSet(m.Overrides) || len(m.Overrides.Elements()) > 0 {
		m.Overrides = overridesOf(ctx, p.Overrides, &diags)
	}
	m.Version, m.ETag = types.Int64Value(p.Version), types.StringValue(p.ETag)
	m.UpdatedAt = types.StringValue(p.UpdatedAt.Format(time.RFC3339Nano))
	return diags
}

func rulesOf(ctx context.Context, rules []client.Rule, diags *diag.Diagnostics) types.List {
	if rules == nil {
		return types.ListNull(ruleType())
	}
	models := make([]ruleModel, len(rules))
	for i, r := range rules {
		models[i] = ruleModel{
			Name: types.StringValue(r.Name), Algorithm: types.StringValue(string(r.Algorithm)),
			Limit:  whole.Of(r.Limit),
			Window: duration.Of(r.Window.Milliseconds()), Burst: whole.Null(),
		}
		if r.Burst != 0 {
			models[i].Burst = whole.Of(r.Burst)
		}
	}
	list, found := types.ListValueFrom(ctx, ruleType(), models)
	diags.Append(found...)
	return list
}

func overridesOf(ctx context.Context, overrides []client.Override, diags *diag.Diagnostics) types.List {
	if len(overrides) == 0 {
		return types.ListNull(overrideType())
	}
	models := make([]overrideModel, len(overrides))
	for i, o := range overrides {
		models[i] = overrideModel{Key: types.StringValue(o.Key), Mode: types.StringNull(),
			Rules: rulesOf(ctx, o.Rules, diags)}
		if o.Mode != "" {
			models[i].Mode = types.StringValue(string(o.Mode))
		}
	}
	list, found := types.ListValueFrom(ctx, overrideType(), models)
	diags.Append(found...)
	return list
}
