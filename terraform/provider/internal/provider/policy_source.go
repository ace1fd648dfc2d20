package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// policySource implements the data source sluice_limiter_policy.
type policySource struct{ client *client.Client }

var _ datasource.DataSourceWithConfigure = (*policySource)(nil)

// Metadata implements datasource.DataSource.
func (d *policySource) Metadata(_ context.Context, req datasource.MetadataRequest,
	resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limiter_policy"
}

// Schema implements datasource.DataSource.
func (d *policySource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := readPolicy()
	attributes["name"] = schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."}
	attributes["etag"] = schema.StringAttribute{Computed: true, MarkdownDescription: etagText}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A limiter policy that this configuration does not manage. " +
			"The policy must exist; otherwise, reading it is an error.",
		Attributes: attributes,
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *policySource) Configure(_ context.Context, req datasource.ConfigureRequest,
	resp *datasource.ConfigureResponse) {
	d.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *policySource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m policyModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !connected(d.client, &resp.Diagnostics) {
		return
	}
	stored, err := d.client.GetPolicy(ctx, m.Name.ValueString())
	switch {
	case errors.Is(err, client.ErrPolicyNotFound):
		resp.Diagnostics.AddAttributeError(path.Root("name"), "The policy does not exist",
			fmt.Sprintf("There is no policy %q.", m.Name.ValueString()))
		return
	case err != nil:
		fail(&resp.Diagnostics, "The policy was not read", err)
		return
	}
	resp.Diagnostics.Append(m.store(ctx, stored)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// readPolicy returns the attributes of a policy in a data source, without its ETag.
func readPolicy() map[string]schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"name": text("The policy's name."), "description": text("A description for people."),
		"mode":           text("`enforce`, `shadow`, `deny` or `allow`."),
		"on_unavailable": text("How a check is decided while the store is unavailable: `local`, `allow` or `deny`."),
		"local_share": schema.Float64Attribute{
			Computed:            true,
			MarkdownDescription: "The share of each limit that one instance admits while the store is unavailable.",
		},
		"no_deny_cache": schema.BoolAttribute{Computed: true,
			MarkdownDescription: "Whether every check reads the store."},
		"rules": readRules("The limits. A check must satisfy all of them."),
		"overrides": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "Exceptions for keys.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":   text("A key, or a prefix of keys that ends in `*`."),
				"mode":  text("Replaces the mode of the policy."),
				"rules": readRules("Replace the rules of the policy."),
			}},
		},
		"version":    schema.Int64Attribute{Computed: true, MarkdownDescription: versionText},
		"updated_at": text(updatedText),
	}
}

// readRules returns the attribute of a list of rules in a data source.
func readRules(description string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":      schema.StringAttribute{Computed: true, MarkdownDescription: "The rule's name."},
			"algorithm": schema.StringAttribute{Computed: true, MarkdownDescription: "The rule's algorithm."},
			"limit": schema.Int64Attribute{Computed: true, CustomType: integer.Type{},
				MarkdownDescription: "The number of units that a window admits."},
			"window": schema.StringAttribute{Computed: true, CustomType: duration.Type{},
				MarkdownDescription: "A length of time, such as `1h30m`."},
			"burst": schema.Int64Attribute{Computed: true, CustomType: integer.Type{},
				MarkdownDescription: "The units that an idle key may use without waiting; null means the limit."},
		}},
	}
}
