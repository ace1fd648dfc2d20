package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// ValidateConfig rejects every configuration that the API would reject. It skips values that are
// still unknown.
func (r *policyResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse) {
	var m resourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	_, _, invalid := m.expand()
	addInvalid(&resp.Diagnostics, invalid)
}

// ModifyPlan keeps the version, the ETag and the time of the last change if the planned policy
// equals the stored policy.
func (r *policyResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() {
		return
	}
	var plan, state resourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !samePolicy(&plan, &state) {
		return
	}
	plan.Version, plan.ETag, plan.UpdatedAt = state.Version, state.ETag, state.UpdatedAt
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// samePolicy reports whether all values of both models are known and both models describe the same
// policy.
func samePolicy(a, b *resourceModel) bool {
	left, leftKnown, _ := a.expand()
	right, rightKnown, _ := b.expand()
	return leftKnown && rightKnown && reflect.DeepEqual(left, right)
}
