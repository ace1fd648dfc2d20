package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// ValidateConfig checks all that the API would, as far as it is known.
func (r *policyResource) ValidateConfig(ctx context.Context, request resource.ValidateConfigRequest,
	answer *resource.ValidateConfigResponse) {
	var m resourceModel
	answer.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if answer.Diagnostics.HasError() {
		return
	}
	_, _, invalid := m.expand()
	addInvalid(&answer.Diagnostics, invalid)
}

// ModifyPlan plans no new version where the plan only writes the same policy in another way.
func (r *policyResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest,
	answer *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() || request.State.Raw.IsNull() {
		return
	}
	var plan, state resourceModel
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() || !same(&plan, &state) {
		return
	}
	plan.Version, plan.ETag, plan.UpdatedAt = state.Version, state.ETag, state.UpdatedAt
	answer.Diagnostics.Append(answer.Plan.Set(ctx, &plan)...)
}

// same reports whether both are one policy, and known.
func same(a, b *resourceModel) bool {
	left, leftKnown, _ := a.expand()
	right, rightKnown, _ := b.expand()
	return leftKnown && rightKnown && reflect.DeepEqual(left, right)
}
