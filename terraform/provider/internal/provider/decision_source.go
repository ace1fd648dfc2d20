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

// decisionSource is the data source sluice_limiter_decision.
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
func (d *decisionSource) Metadata(_ context.Context, request datasource.MetadataRequest,
	answer *datasource.MetadataResponse) {
	answer.TypeName = request.ProviderTypeName + "_limiter_decision"
}

// Schema implements datasource.DataSource.
func (d *decisionSource) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	number := func(text string) schema.Int64Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
	}
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "What a check of one unit would be answered now, for `check` blocks and pipelines. It is a peek: nothing is charged.",
		Attributes: map[string]schema.Attribute{
			"policy": schema.StringAttribute{Required: true, MarkdownDescription: "The policy's name."},
			"key": schema.StringAttribute{Required: true, MarkdownDescription: "Whose limit.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, policy.MaxKey)}},
			"allowed": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it would pass."},
			"mode":    text("The mode that holds for the key."),
			"degraded": schema.BoolAttribute{Computed: true,
				MarkdownDescription: "Whether the store is away, and `on_unavailable` decides."},
			"violated":       text("The rule that would deny; null when none does."),
			"limit":          number("The limit of the tightest rule."),
			"remaining":      number("How much the tightest rule has left."),
			"reset_after_ms": number("In how many milliseconds that rule is full again."),
			"retry_after_ms": number("In how many milliseconds one unit would pass; 0 when it would now, null when it never will."),
			"rules": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "Each rule's part.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name": text("The rule."), "limit": number("Its limit."), "remaining": number("What it has left."),
					"reset_after_ms": number("In how many milliseconds it is full again."),
				}},
			},
		},
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *decisionSource) Configure(_ context.Context, request datasource.ConfigureRequest,
	answer *datasource.ConfigureResponse) {
	d.client = clientOf(request.ProviderData, &answer.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *decisionSource) Read(ctx context.Context, request datasource.ReadRequest, answer *datasource.ReadResponse) {
	var m decisionModel
	answer.Diagnostics.Append(request.Config.Get(ctx, &m)...)
	if answer.Diagnostics.HasError() || !connected(d.client, &answer.Diagnostics) {
		return
	}
	decision, err := d.client.Peek(ctx, m.Policy.ValueString(), m.Key.ValueString())
	if err != nil {
		fail(&answer.Diagnostics, "The limit was not read", err)
		return
	}
	m.fill(decision)
	answer.Diagnostics.Append(answer.State.Set(ctx, &m)...)
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
