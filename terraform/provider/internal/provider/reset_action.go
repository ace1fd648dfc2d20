package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/policy"
)

// resetAction is the action sluice_limit_reset, in Terraform 1.14 and later.
type resetAction struct{ client *client.Client }

var _ action.ActionWithConfigure = (*resetAction)(nil)

type resetModel struct {
	Policy types.String `tfsdk:"policy"`
	Key    types.String `tfsdk:"key"`
}

// Metadata implements action.Action.
func (a *resetAction) Metadata(_ context.Context, request action.MetadataRequest, answer *action.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limit_reset"
}

// Schema implements action.Action.
func (a *resetAction) Schema(_ context.Context, _ action.SchemaRequest, answer *action.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "Makes a key start afresh under a policy: what it was charged is forgotten. Needs Terraform 1.14 or later.",
		Attributes: map[string]schema.Attribute{
			"policy": schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."},
			"key": schema.StringAttribute{
				Required: true, MarkdownDescription: "Whose limit.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, policy.MaxKey)},
			},
		},
	}
}

// Configure implements action.ActionWithConfigure.
func (a *resetAction) Configure(_ context.Context, request action.ConfigureRequest, answer *action.ConfigureResponse) {
	a.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// Invoke implements action.Action.
func (a *resetAction) Invoke(ctx context.Context, request action.InvokeRequest, answer *action.InvokeResponse) {
	var m resetModel
	answer.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if answer.Diagnostics.HasError() || !connected(a.client, &answer.Diagnostics) {
		return
	}
	if err := a.client.Reset(ctx, m.Policy.ValueString(), m.Key.ValueString()); err != nil {
		fail(&answer.Diagnostics, "The key was not reset", err)
		return
	}
	answer.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("%s starts afresh under %s",
		m.Key.ValueString(), m.Policy.ValueString())})
}
