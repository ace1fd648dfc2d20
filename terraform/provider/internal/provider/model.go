package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// policyModel is a policy as Terraform holds it. Its lists are lists of [ruleModel] and
// [overrideModel], of which any part may be unknown.
type policyModel struct {
	Name          types.String  `tfsdk:"name"`
	Description   types.String  `tfsdk:"description"`
	Mode          types.String  `tfsdk:"mode"`
	OnUnavailable types.String  `tfsdk:"on_unavailable"`
	LocalShare    types.Float64 `tfsdk:"local_share"`
	NoDenyCache   types.Bool    `tfsdk:"no_deny_cache"`
	Rules         types.List    `tfsdk:"rules"`
	Overrides     types.List    `tfsdk:"overrides"`
	Version       types.Int64   `tfsdk:"version"`
	ETag          types.String  `tfsdk:"etag"`
	UpdatedAt     types.String  `tfsdk:"updated_at"`
}

// resourceModel is sluice_limiter_policy.
type resourceModel struct {
	policyModel
	Overwrite types.Bool `tfsdk:"overwrite"`
}

type ruleModel struct {
	Name      types.String   `tfsdk:"name"`
	Algorithm types.String   `tfsdk:"algorithm"`
	Limit     whole.Value    `tfsdk:"limit"`
	Window    duration.Value `tfsdk:"window"`
	Burst     whole.Value    `tfsdk:"burst"`
}

type overrideModel struct {
	Key   types.String `tfsdk:"key"`
	Mode  types.String `tfsdk:"mode"`
	Rules types.List   `tfsdk:"rules"`
}

func ruleType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "algorithm": types.StringType, "limit": whole.Type{}, "window": duration.Type{},
		"burst": whole.Type{},
	}}
}

func overrideType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"key": types.StringType, "mode": types.StringType, "rules": types.ListType{ElemType: ruleType()},
	}}
}
