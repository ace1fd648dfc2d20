package duration

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
)

// KeepEqual returns a plan modifier for attributes of [Type]. If the planned duration equals the
// duration in the state, the plan keeps the state's text and shows no change.
func KeepEqual() planmodifier.String { return keepEqual{} }

type keepEqual struct{}

func (keepEqual) Description(context.Context) string {
	return "A different notation of the same duration is no change."
}

func (k keepEqual) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

func (keepEqual) PlanModifyString(_ context.Context, req planmodifier.StringRequest,
	resp *planmodifier.StringResponse) {
	planned, plannedOK := Value{req.PlanValue}.Duration()
	stored, storedOK := Value{req.StateValue}.Duration()
	if plannedOK && storedOK && planned == stored {
		resp.PlanValue = req.StateValue
	}
}
