package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/policy"
)

// decisionSource implements the data source sluice_limiter_decision.
type decisionSource struct{ client *client.Client }

var _ datasource.DataSourceWithConfigure = (*decisionSource)(nil)

type decisionModel struct {
	Policy       types.String  `tfsdk:"policy"`
	Key          types.String  `tfsdk:"key"`
	Allowed      types.Bool    `tfsdk:"allowed"`
	Mode         types.String  `tfsdk:"mode"`
	Degraded     types.Bool    `tfsdk:"degraded"`
	Violated     types.String  `tfsdk:"violated"`
	Limit        types.Int64   `tfsdk:"limit"`
	Remaining    types.Int64   `tfsdk:"remaining"`
	ResetAfterMS types.Int64   `tfsdk:"reset_after_ms"`
	RetryAfterMS types.Int64   `tfsdk:"retry_after_ms"`
	Rules        []decidedRule `tfsdk:"rules"`
}

type decidedRule struct {
	Name         types.String `tfsdk:"name"`
	Limit        types.Int64  `tfsdk:"limit"`
	Remaining    types.Int64  `tfsdk:"remaining"`
	ResetAfterMS types.Int64  `tfsdk:"reset_after_ms"`
}

// Metadata implements datasource.DataSource.
func (d *decisionSource) Metadata(_ context.Context, req datasource.MetadataRequest,
	resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_limiter_decision"
}

// Schema implements datasource.DataSource.
func (d *decisionSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	number := func(text string) schema.Int64Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
	}
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The decision that a check of one unit would get now, for `check` blocks and " +
			"pipelines. Reading the decision charges nothing.",
		Attributes: map[string]schema.Attribute{
			"policy": schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."},
			"key": schema.StringAttribute{Required: true, MarkdownDescription: "The key, such as a customer's ID.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, policy.MaxKey)}},
			"allowed": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the check would be allowed."},
			"mode":    text("The mode that applies to the key."),
			"degraded": schema.BoolAttribute{Computed: true,
				MarkdownDescription: "Whether the store is unavailable, so that `on_unavailable` decides."},
			"violated":       text("The rule that would deny the check; null if the check would be allowed."),
			"limit":          number("The limit of the tightest rule."),
			"remaining":      number("The number of units that the tightest rule still admits."),
			"reset_after_ms": number("Milliseconds until the tightest rule admits its full limit again."),
			"retry_after_ms": number("Milliseconds until one unit would be allowed; 0 if it would be allowed now, " +
				"null if it will never be allowed."),
			"rules": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The state of each rule.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":           text("The rule's name."),
					"limit":          number("The rule's limit."),
					"remaining":      number("The number of units that the rule still admits."),
					"reset_after_ms": number("Milliseconds until the rule admits its full limit again."),
				}},
			},
		},
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *decisionSource) Configure(_ context.Context, req datasource.ConfigureRequest,
	resp *datasource.ConfigureResponse) {
	d.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *decisionSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m decisionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !connected(d.client, &resp.Diagnostics) {
		return
	}
	decision, err := d.client.Peek(ctx, m.Policy.ValueString(), m.Key.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The limit was not read", err)
		return
	}
	m.fill(decision)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *decisionModel) fill(d client.Decision) {
	m.Allowed, m.Mode, m.Degraded = types.BoolValue(d.Allowed), types.StringValue(string(d.Mode)),
		types.BoolValue(d.Degraded)
	m.Violated = types.StringNull()
	if d.Violated != "" {
		m.Violated = types.StringValue(d.Violated)
	}
	m.Limit, m.Remaining = types.Int64Value(d.Limit), types.Int64Value(d.Remaining)
	m.ResetAfterMS, m.RetryAfterMS = types.Int64Value(d.ResetAfter.Milliseconds()), types.Int64Null()
	if d.RetryAfter != nil {
		m.RetryAfterMS = types.Int64Value(d.RetryAfter.Milliseconds())
	}
	m.Rules = make([]decidedRule, len(d.Rules))
	for i, r := range d.Rules {
		m.Rules[i] = decidedRule{
			Name: types.StringValue(r.Name), Limit: types.Int64Value(r.Limit), Remaining: types.Int64Value(r.Remaining),
			ResetAfterMS: types.Int64Value(r.ResetAfter.Milliseconds()),
		}
	}
}
