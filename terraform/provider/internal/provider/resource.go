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

// policyResource is sluice_limiter_policy.
type policyResource struct{ client *client.Client }

var (
	_ resource.ResourceWithConfigure      = (*policyResource)(nil)
	_ resource.ResourceWithIdentity       = (*policyResource)(nil)
	_ resource.ResourceWithImportState    = (*policyResource)(nil)
	_ resource.ResourceWithValidateConfig = (*policyResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*policyResource)(nil)
)

// Metadata implements resource.Resource.
func (r *policyResource) Metadata(_ context.Context, request resource.MetadataRequest,
	answer *resource.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limiter_policy"
}

// Schema implements resource.Resource.
func (r *policyResource) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = policySchema()
}

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *policyResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest,
	answer *resource.IdentitySchemaResponse) {
	answer.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true, Description: "The policy's name."},
	}}
}

// Configure implements resource.ResourceWithConfigure.
func (r *policyResource) Configure(_ context.Context, request resource.ConfigureRequest,
	answer *resource.ConfigureResponse) {
	r.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// Create implements resource.Resource. It takes no policy over unless told to.
func (r *policyResource) Create(ctx context.Context, request resource.CreateRequest, answer *resource.CreateResponse) {
	var plan resourceModel
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	if answer.Diagnostics.HasError() {
		return
	}
	var when []client.Condition
	if !plan.Overwrite.ValueBool() {
		when = append(when, client.IfNoneMatch())
	}
	if !r.put(ctx, &plan, change{after: 0, when: when, refused: existsAlready}, &answer.Diagnostics) {
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
	answer.Diagnostics.Append(identify(ctx, answer.Identity, plan.Name)...)
}

// Read implements resource.Resource. A policy that is gone is planned anew.
func (r *policyResource) Read(ctx context.Context, request resource.ReadRequest, answer *resource.ReadResponse) {
	var state resourceModel
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() || !connected(r.client, &answer.Diagnostics) {
		return
	}
	name := state.Name.ValueString()
	stored, err := r.client.GetPolicy(ctx, name)
	switch {
	case errors.Is(err, client.ErrPolicyNotFound):
		answer.Diagnostics.AddWarning("The policy was deleted elsewhere", fmt.Sprintf("There is no policy %q.", name))
		answer.State.RemoveResource(ctx)
		answer.Diagnostics.Append(identify(ctx, answer.Identity, state.Name)...) // the framework misses it even here
		return
	case err != nil:
		fail(&answer.Diagnostics, "The policy was not read", err)
		return
	}
	answer.Diagnostics.Append(state.store(ctx, stored)...)
	if answer.Diagnostics.HasError() {
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &state)...)
	answer.Diagnostics.Append(identify(ctx, answer.Identity, state.Name)...)
}

// Update implements resource.Resource. It changes only the version that Terraform has read.
func (r *policyResource) Update(ctx context.Context, request resource.UpdateRequest, answer *resource.UpdateResponse) {
	var plan, state resourceModel
	answer.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() {
		return
	}
	// A change of overwrite, or of how a policy is written, is none of the API's business.
	if !same(&plan, &state) {
		when := []client.Condition{client.IfMatch(state.ETag.ValueString())}
		if !r.put(ctx, &plan, change{after: state.Version.ValueInt64(), when: when, refused: changedElsewhere},
			&answer.Diagnostics) {
			return
		}
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &plan)...)
	answer.Diagnostics.Append(identify(ctx, answer.Identity, plan.Name)...)
}

// Delete implements resource.Resource. It deletes only the version that Terraform has read; one
// that is gone already is deleted.
func (r *policyResource) Delete(ctx context.Context, request resource.DeleteRequest, answer *resource.DeleteResponse) {
	var state resourceModel
	answer.Diagnostics.Append(request.State.Get(ctx, &state)...)
	if answer.Diagnostics.HasError() || !connected(r.client, &answer.Diagnostics) {
		return
	}
	name := state.Name.ValueString()
	err := r.client.DeletePolicy(ctx, name, client.IfMatch(state.ETag.ValueString()))
	if err == nil || errors.Is(err, client.ErrPolicyNotFound) {
		return
	}
	// A deletion whose answer was lost has happened too.
	if _, missing := r.client.GetPolicy(ctx, name); errors.Is(missing, client.ErrPolicyNotFound) {
		return
	}
	if errors.Is(err, client.ErrPreconditionFailed) {
		answer.Diagnostics.AddError(changedElsewhere(name))
		return
	}
	fail(&answer.Diagnostics, "The policy was not deleted", err)
}

// ImportState implements resource.ResourceWithImportState: by name, as the id or as the identity.
// The read that follows fills in the rest.
func (r *policyResource) ImportState(ctx context.Context, request resource.ImportStateRequest,
	answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), request, answer)
}

// identify sets the identity, for hosts that know of identities.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, name types.String) diag.Diagnostics {
	if identity == nil {
		return nil
	}
	return identity.SetAttribute(ctx, path.Root("name"), name)
}
