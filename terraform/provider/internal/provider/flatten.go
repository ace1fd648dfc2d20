package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// store fills the model from a policy that the API returned. If the configuration has an empty list
// of overrides, the model keeps the empty list: the API does not distinguish it from a missing
// list.
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

// rulesOf converts rules of the API to a list of [ruleModel].
func rulesOf(ctx context.Context, rules []client.Rule, diags *diag.Diagnostics) types.List {
	if rules == nil {
		return types.ListNull(ruleType())
	}
	models := make([]ruleModel, len(rules))
	for i, r := range rules {
		models[i] = ruleModel{
			Name: types.StringValue(r.Name), Algorithm: types.StringValue(string(r.Algorithm)),
			Limit:  integer.Of(r.Limit),
			Window: duration.Of(r.Window), Burst: integer.Null(),
		}
		if r.Burst != 0 {
			models[i].Burst = integer.Of(r.Burst)
		}
	}
	list, found := types.ListValueFrom(ctx, ruleType(), models)
	diags.Append(found...)
	return list
}

// overridesOf converts overrides of the API to a list of [overrideModel].
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
