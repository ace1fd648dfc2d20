package duration

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
)

// KeepEqual is a plan modifier for attributes of [Type]: a duration that is only written in another
// way than the stored one is no change.
func KeepEqual() planmodifier.String { return keepEqual{} }

type keepEqual struct{}

func (keepEqual) Description(context.Context) string {
	return "A duration that is only written in another way is no change."
}

func (k keepEqual) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

func (keepEqual) PlanModifyString(_ context.Context, request planmodifier.StringRequest,
	response *planmodifier.StringResponse) {
	planned, fine := Value{request.PlanValue}.Milliseconds()
	stored, fineToo := Value{request.StateValue}.Milliseconds()
	if fine && fineToo && planned == stored {
		response.PlanValue = request.StateValue
	}
}
