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

// policyList is the list resource sluice_limiter_policy: `terraform query` finds policies to import
// with it, in Terraform 1.14 and later.
type policyList struct{ client *client.Client }

var _ list.ListResourceWithConfigure = (*policyList)(nil)

type listModel struct {
	Prefix types.String `tfsdk:"name_prefix"`
}

// Metadata implements list.ListResource.
func (l *policyList) Metadata(_ context.Context, request resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limiter_policy"
}

// ListResourceConfigSchema implements list.ListResource.
func (l *policyList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	answer *list.ListResourceSchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "Finds limiter policies, to import those that were made by hand. Needs Terraform 1.14 or later.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true,
				MarkdownDescription: "Only those whose name begins so."},
		},
	}
}

// Configure implements list.ListResourceWithConfigure.
func (l *policyList) Configure(_ context.Context, request resource.ConfigureRequest,
	answer *resource.ConfigureResponse) {
	l.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// List implements list.ListResource.
func (l *policyList) List(ctx context.Context, request list.ListRequest, stream *list.ListResultsStream) {
	var m listModel
	diags := request.Config.Get(ctx, &m)
	if diags.HasError() || !connected(l.client, &diags) {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(yield func(list.ListResult) bool) {
		left := request.Limit
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
			if !yield(l.result(ctx, request, p)) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// result is one policy. A listing has no ETags, so that the policy is read once more where all of
// it is asked for.
func (l *policyList) result(ctx context.Context, request list.ListRequest, p client.StoredPolicy) list.ListResult {
	result := request.NewListResult(ctx)
	result.DisplayName = p.Name
	result.Diagnostics.Append(identify(ctx, result.Identity, types.StringValue(p.Name))...)
	if !request.IncludeResource {
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
