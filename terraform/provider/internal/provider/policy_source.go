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
	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

// policySource is the data source sluice_limiter_policy.
type policySource struct{ client *client.Client }

var _ datasource.DataSourceWithConfigure = (*policySource)(nil)

// Metadata implements datasource.DataSource.
func (d *policySource) Metadata(_ context.Context, request datasource.MetadataRequest,
	answer *datasource.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limiter_policy"
}

// Schema implements datasource.DataSource.
func (d *policySource) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	attributes := readPolicy()
	attributes["name"] = schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."}
	attributes["etag"] = schema.StringAttribute{Computed: true, MarkdownDescription: etagText}
	answer.Schema = schema.Schema{MarkdownDescription: "A limiter's policy that is made elsewhere. It is an error if there is none.", Attributes: attributes}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *policySource) Configure(_ context.Context, request datasource.ConfigureRequest,
	answer *datasource.ConfigureResponse) {
	d.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *policySource) Read(ctx context.Context, request datasource.ReadRequest, answer *datasource.ReadResponse) {
	var m policyModel
	answer.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if answer.Diagnostics.HasError() || !connected(d.client, &answer.Diagnostics) {
		return
	}
	stored, err := d.client.GetPolicy(ctx, m.Name.ValueString())
	switch {
	case errors.Is(err, client.ErrPolicyNotFound):
		answer.Diagnostics.AddAttributeError(path.Root("name"), "There is no such policy",
			fmt.Sprintf("There is no policy %q.", m.Name.ValueString()))
		return
	case err != nil:
		fail(&answer.Diagnostics, "The policy was not read", err)
		return
	}
	answer.Diagnostics.Append(m.store(ctx, stored)...)
	answer.Diagnostics.Append(answer.State.Set(ctx, &m)...)
}

// readPolicy are the attributes of a policy as data sources show it, without its etag.
func readPolicy() map[string]schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"name": text("The policy's name."), "description": text("For people."),
		"mode":           text("`enforce`, `shadow`, `deny` or `allow`."),
		"on_unavailable": text("What decides while the store is away: `local`, `allow` or `deny`."),
		"local_share": schema.Float64Attribute{
			Computed:            true,
			MarkdownDescription: "The part of each limit that one instance admits while the store is away.",
		},
		"no_deny_cache": schema.BoolAttribute{Computed: true,
			MarkdownDescription: "Whether every check asks the store."},
		"rules": readRules("The limits, all of which hold at once."),
		"overrides": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "The exceptions for keys.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key": text("A key, or a prefix of keys that ends in `*`."), "mode": text("Replaces the policy's."),
				"rules": readRules("Replace the policy's."),
			}},
		},
		"version":    schema.Int64Attribute{Computed: true, MarkdownDescription: versionText},
		"updated_at": text(updatedText),
	}
}

func readRules(description string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":      schema.StringAttribute{Computed: true, MarkdownDescription: "Unique among the rules."},
			"algorithm": schema.StringAttribute{Computed: true, MarkdownDescription: "How it counts."},
			"limit": schema.Int64Attribute{Computed: true, CustomType: whole.Type{},
				MarkdownDescription: "How much a window admits."},
			"window": schema.StringAttribute{Computed: true, CustomType: duration.Type{},
				MarkdownDescription: "A length of time, such as `1h30m`."},
			"burst": schema.Int64Attribute{Computed: true, CustomType: whole.Type{},
				MarkdownDescription: "How much may pass at once; null is the limit."},
		}},
	}
}
