package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
)

// policyResource implements the resource sluice_limiter_policy.
type policyResource struct{ client *client.Client }

var (
	_ resource.ResourceWithConfigure      = (*policyResource)(nil)
	_ resource.ResourceWithIdentity       = (*policyResource)(nil)
	_ resource.ResourceWithImportState    = (*policyResource)(nil)
	_ resource.ResourceWithValidateConfig = (*policyResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*policyResource)(nil)
)

// Metadata implements resource.Resource.
func (r *policyResource) Metadata(_ context.Context, req resource.MetadataRequest,
	resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limiter_policy"
}

// Schema implements resource.Resource.
func (r *policyResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = policySchema()
}

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *policyResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true, Description: "The policy's name."},
	}}
}

// Configure implements resource.ResourceWithConfigure.
func (r *policyResource) Configure(_ context.Context, req resource.ConfigureRequest,
	resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// Create implements resource.Resource. It fails if the policy exists and overwrite is not true.
func (r *policyResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan resourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var conditions []client.Condition
	if !plan.Overwrite.ValueBool() {
		conditions = append(conditions, client.IfNoneMatch())
	}
	if !r.put(ctx, &plan, change{after: 0, conditions: conditions, conflict: alreadyExists}, &resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Name)...)
}

// Read implements resource.Resource. If the policy no longer exists, Read removes it from the
// state, so that the next plan creates it again.
func (r *policyResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state resourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !connected(r.client, &resp.Diagnostics) {
		return
	}
	name := state.Name.ValueString()
	stored, err := r.client.GetPolicy(ctx, name)
	switch {
	case errors.Is(err, client.ErrPolicyNotFound):
		resp.Diagnostics.AddWarning("The policy was deleted elsewhere", fmt.Sprintf("There is no policy %q.", name))
		resp.State.RemoveResource(ctx)
		resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state.Name)...) // required for removed resources too
		return
	case err != nil:
		fail(&resp.Diagnostics, "The policy was not read", err)
		return
	}
	resp.Diagnostics.Append(state.store(ctx, stored)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state.Name)...)
}

// Update implements resource.Resource. It replaces only the version that Terraform has read.
func (r *policyResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state resourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	// If only overwrite or the notation of a value has changed, there is nothing to store.
	if !samePolicy(&plan, &state) {
		c := change{
			after:      state.Version.ValueInt64(),
			conditions: []client.Condition{client.IfMatch(state.ETag.ValueString())},
			conflict:   changedElsewhere,
		}
		if !r.put(ctx, &plan, c, &resp.Diagnostics) {
			return
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Name)...)
}

// Delete implements resource.Resource. It deletes only the version that Terraform has read. It
// succeeds if the policy does not exist.
func (r *policyResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state resourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !connected(r.client, &resp.Diagnostics) {
		return
	}
	name := state.Name.ValueString()
	err := r.client.DeletePolicy(ctx, name, client.IfMatch(state.ETag.ValueString()))
	if err == nil || errors.Is(err, client.ErrPolicyNotFound) {
		return
	}
	// The API may have deleted the policy although its response was lost.
	if _, missing := r.client.GetPolicy(ctx, name); errors.Is(missing, client.ErrPolicyNotFound) {
		return
	}
	if errors.Is(err, client.ErrPreconditionFailed) {
		resp.Diagnostics.AddError(changedElsewhere(name))
		return
	}
	fail(&resp.Diagnostics, "The policy was not deleted", err)
}

// ImportState implements resource.ResourceWithImportState. The ID and the identity are the policy's
// name; Terraform reads the other attributes afterwards.
func (r *policyResource) ImportState(ctx context.Context, req resource.ImportStateRequest,
	resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}

// setIdentity sets the resource's identity. identity is nil if the version of Terraform or OpenTofu
// does not support identities.
func setIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, name types.String) diag.Diagnostics {
	if identity == nil {
		return nil
	}
	return identity.SetAttribute(ctx, path.Root("name"), name)
}
