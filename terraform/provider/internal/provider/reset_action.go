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

// resetAction implements the action sluice_limit_reset. It needs Terraform 1.14 or later.
type resetAction struct{ client *client.Client }

var _ action.ActionWithConfigure = (*resetAction)(nil)

type resetModel struct {
	Policy types.String `tfsdk:"policy"`
	Key    types.String `tfsdk:"key"`
}

// Metadata implements action.Action.
func (a *resetAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limit_reset"
}

// Schema implements action.Action.
func (a *resetAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Resets a key of a policy to its full limit. Needs Terraform 1.14 or later.",
		Attributes: map[string]schema.Attribute{
			"policy": schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."},
			"key": schema.StringAttribute{
				Required: true, MarkdownDescription: "The key, such as a customer's ID.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, policy.MaxKey)},
			},
		},
	}
}

// Configure implements action.ActionWithConfigure.
func (a *resetAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// Invoke implements action.Action.
func (a *resetAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m resetModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !connected(a.client, &resp.Diagnostics) {
		return
	}
	if err := a.client.Reset(ctx, m.Policy.ValueString(), m.Key.ValueString()); err != nil {
		fail(&resp.Diagnostics, "The key was not reset", err)
		return
	}
	message := fmt.Sprintf("The key %s of the policy %s was reset", m.Key.ValueString(), m.Policy.ValueString())
	resp.SendProgress(action.InvokeProgressEvent{Message: message})
}
