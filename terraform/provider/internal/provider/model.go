package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// policyModel holds the attributes of a policy. Rules is a list of [ruleModel], and Overrides is a
// list of [overrideModel]. Every value in the lists may be unknown.
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

// resourceModel holds the attributes of the resource sluice_limiter_policy.
type resourceModel struct {
	policyModel
	Overwrite types.Bool `tfsdk:"overwrite"`
}

// ruleModel holds the attributes of a rule.
type ruleModel struct {
	Name      types.String   `tfsdk:"name"`
	Algorithm types.String   `tfsdk:"algorithm"`
	Limit     integer.Value  `tfsdk:"limit"`
	Window    duration.Value `tfsdk:"window"`
	Burst     integer.Value  `tfsdk:"burst"`
}

// overrideModel holds the attributes of an override.
type overrideModel struct {
	Key   types.String `tfsdk:"key"`
	Mode  types.String `tfsdk:"mode"`
	Rules types.List   `tfsdk:"rules"`
}

func ruleType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "algorithm": types.StringType, "limit": integer.Type{}, "window": duration.Type{},
		"burst": integer.Type{},
	}}
}

func overrideType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"key": types.StringType, "mode": types.StringType, "rules": types.ListType{ElemType: ruleType()},
	}}
}
