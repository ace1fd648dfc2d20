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

// policiesSource implements the data source sluice_limiter_policies.
type policiesSource struct{ client *client.Client }

var _ datasource.DataSourceWithConfigure = (*policiesSource)(nil)

type policiesModel struct {
	Prefix   types.String  `tfsdk:"name_prefix"`
	Policies []listedModel `tfsdk:"policies"`
}

// listedModel holds the attributes of a listed policy. It has no ETag, because the API's list of
// policies contains no ETags.
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
func (d *policiesSource) Metadata(_ context.Context, req datasource.MetadataRequest,
	resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limiter_policies"
}

// Schema implements datasource.DataSource.
func (d *policiesSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "All limiter policies, including policies that Terraform does not manage.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true,
				MarkdownDescription: "Returns only policies whose name starts with this prefix."},
			"policies": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The policies, sorted by name.",
				NestedObject: schema.NestedAttributeObject{Attributes: readPolicy()},
			},
		},
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *policiesSource) Configure(_ context.Context, req datasource.ConfigureRequest,
	resp *datasource.ConfigureResponse) {
	d.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *policiesSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m policiesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !connected(d.client, &resp.Diagnostics) {
		return
	}
	m.Policies = []listedModel{}
	for p, err := range d.client.ListPolicies(ctx) {
		if err != nil {
			fail(&resp.Diagnostics, "The policies were not listed", err)
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
			Rules:       rulesOf(ctx, p.Rules, &resp.Diagnostics),
			Overrides:   overridesOf(ctx, p.Overrides, &resp.Diagnostics),
			Version:     types.Int64Value(p.Version),
			UpdatedAt:   types.StringValue(p.UpdatedAt.Format(time.RFC3339Nano)),
		})
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
