package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
)

// policyList implements the list resource sluice_limiter_policy. `terraform query` uses it to find
// policies to import. It needs Terraform 1.14 or later.
type policyList struct{ client *client.Client }

var _ list.ListResourceWithConfigure = (*policyList)(nil)

type listModel struct {
	Prefix types.String `tfsdk:"name_prefix"`
}

// Metadata implements list.ListResource.
func (l *policyList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limiter_policy"
}

// ListResourceConfigSchema implements list.ListResource.
func (l *policyList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Finds limiter policies, for example to import manually created policies. " +
			"Needs Terraform 1.14 or later.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true,
				MarkdownDescription: "Returns only policies whose name starts with this prefix."},
		},
	}
}

// Configure implements list.ListResourceWithConfigure.
func (l *policyList) Configure(_ context.Context, req resource.ConfigureRequest,
	resp *resource.ConfigureResponse) {
	l.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// List implements list.ListResource.
func (l *policyList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var m listModel
	diags := req.Config.Get(ctx, &m)
	if diags.HasError() || !connected(l.client, &diags) {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(yield func(list.ListResult) bool) {
		left := req.Limit
		for p, err := range l.client.ListPolicies(ctx) {
			if err != nil {
				var failed diag.Diagnostics
				fail(&failed, "The policies were not listed", err)
				yield(list.ListResult{Diagnostics: failed})
				return
			}
			if !strings.HasPrefix(p.Name, m.Prefix.ValueString()) {
				continue
			}
			if !yield(l.result(ctx, req, p)) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// result returns the list result of one policy. If Terraform requests all attributes of the
// resource, result reads the policy again, because the API's list of policies contains no ETags.
func (l *policyList) result(ctx context.Context, req list.ListRequest, p client.StoredPolicy) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = p.Name
	result.Diagnostics.Append(setIdentity(ctx, result.Identity, types.StringValue(p.Name))...)
	if !req.IncludeResource {
		return result
	}
	stored, err := l.client.GetPolicy(ctx, p.Name)
	if err != nil {
		fail(&result.Diagnostics, "The policy was not read", err)
		return result
	}
	m := resourceModel{policyModel: policyModel{Overrides: types.ListNull(overrideType())}}
	result.Diagnostics.Append(m.store(ctx, stored)...)
	result.Diagnostics.Append(result.Resource.Set(ctx, &m)...)
	return result
}
