package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
)

// policiesSource is the data source sluice_limiter_policies.
type policiesSource struct{ client *client.Client }

var _ datasource.DataSourceWithConfigure = (*policiesSource)(nil)

type policiesModel struct {
	Prefix   types.String  `tfsdk:"name_prefix"`
	Policies []listedModel `tfsdk:"policies"`
}

// listedModel is a policy of a listing, which has no etag.
type listedModel struct {
	Name          types.String  `tfsdk:"name"`
	Description   types.String  `tfsdk:"description"`
	Mode          types.String  `tfsdk:"mode"`
	OnUnavailable types.String  `tfsdk:"on_unavailable"`
	LocalShare    types.Float64 `tfsdk:"local_share"`
	NoDenyCache   types.Bool    `tfsdk:"no_deny_cache"`
	Rules         types.List    `tfsdk:"rules"`
	Overrides     types.List    `tfsdk:"overrides"`
	Version       types.Int64   `tfsdk:"version"`
	UpdatedAt     types.String  `tfsdk:"updated_at"`
}

// Metadata implements datasource.DataSource.
func (d *policiesSource) Metadata(_ context.Context, request datasource.MetadataRequest,
	answer *datasource.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limiter_policies"
}

// Schema implements datasource.DataSource.
func (d *policiesSource) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "All limiter policies, by name: those of Terraform, and those that people or programs have made.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true,
				MarkdownDescription: "Only those whose name begins so."},
			"policies": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The policies, in the order of their names.",
				NestedObject: schema.NestedAttributeObject{Attributes: readPolicy()},
			},
		},
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *policiesSource) Configure(_ context.Context, request datasource.ConfigureRequest,
	answer *datasource.ConfigureResponse) {
	d.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *policiesSource) Read(ctx context.Context, request datasource.ReadRequest, answer *datasource.ReadResponse) {
	var m policiesModel
	answer.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if answer.Diagnostics.HasError() || !connected(d.client, &answer.Diagnostics) {
		return
	}
	m.Policies = []listedModel{}
	for p, err := range d.client.ListPolicies(ctx) {
		if err != nil {
			fail(&answer.Diagnostics, "The policies were not listed", err)
			return
		}
		if !strings.HasPrefix(p.Name, m.Prefix.ValueString()) {
			continue
		}
		m.Policies = append(m.Policies, listedModel{
			Name: types.StringValue(p.Name), Description: types.StringValue(p.Description),
			Mode:          types.StringValue(string(p.Mode)),
			OnUnavailable: types.StringValue(string(p.OnUnavailable)), LocalShare: types.Float64Value(p.LocalShare),
			NoDenyCache: types.BoolValue(p.NoDenyCache),
			Rules:       rulesOf(ctx, p.Rules, &answer.Diagnostics),
			Overrides:   overridesOf(ctx, p.Overrides, &answer.Diagnostics),
			Version:     types.Int64Value(p.Version), UpdatedAt: types.StringValue(p.UpdatedAt.Format(time.RFC3339Nano)),
		})
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &m)...)
}
