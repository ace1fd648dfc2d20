package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

// maxRetries is the maximum number of retries.
const maxRetries = 10

// settings holds the arguments of the provider block.
type settings struct {
	Endpoint     types.String   `tfsdk:"endpoint"`
	Region       types.String   `tfsdk:"region"`
	Auth         types.String   `tfsdk:"auth"`
	Profile      types.String   `tfsdk:"profile"`
	AccessKey    types.String   `tfsdk:"access_key"`
	SecretKey    types.String   `tfsdk:"secret_key"`
	SessionToken types.String   `tfsdk:"session_token"`
	AssumeRole   types.Object   `tfsdk:"assume_role"`
	Timeout      duration.Value `tfsdk:"timeout"`
	Retries      types.Int64    `tfsdk:"retries"`
}

// role holds the arguments of assume_role.
type role struct {
	ARN         types.String   `tfsdk:"role_arn"`
	SessionName types.String   `tfsdk:"session_name"`
	ExternalID  types.String   `tfsdk:"external_id"`
	Duration    duration.Value `tfsdk:"duration"`
}

// Schema implements provider.Provider.
func (s *sluice) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	optional := func(text string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: text, Validators: validators}
	}
	sensitive := func(text string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: text,
			Validators: validators}
	}
	length := func(text string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, CustomType: duration.Type{}, MarkdownDescription: text}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Manages limiter policies of [Sluice](https://github.com/sluicehq/sluice) as code: " +
			"limits change with pull requests, and the plan reports mistakes. " +
			"The provider calls Sluice's API and signs requests with AWS Signature Version 4.",
		Attributes: map[string]schema.Attribute{
			"endpoint": optional("The URL of the API, which is the output `endpoint` of the module. " +
				"Defaults to `SLUICE_ENDPOINT`. The argument or the variable is required."),
			"region": optional("The region to sign for. Required only for a custom domain, " +
				"which does not contain the region. Defaults to `SLUICE_REGION`, then to the AWS configuration."),
			"auth": optional("`aws_iam` (the default) signs requests; `none` sends them unsigned, "+
				"for the local stack. "+
				"Defaults to `SLUICE_AUTH`.",
				stringvalidator.OneOf(string(client.AuthIAM), string(client.AuthNone))),
			"profile": optional("The profile of the shared AWS configuration to sign with. "+
				"Defaults to `SLUICE_PROFILE`, then to the default chain of the AWS SDK.",
				stringvalidator.ConflictsWith(path.MatchRoot("access_key"))),
			"access_key": sensitive("A static access key. Defaults to `SLUICE_ACCESS_KEY`.",
				stringvalidator.AlsoRequires(path.MatchRoot("secret_key"))),
			"secret_key": sensitive("The secret of `access_key`. Defaults to `SLUICE_SECRET_KEY`.",
				stringvalidator.AlsoRequires(path.MatchRoot("access_key"))),
			"session_token": sensitive("The session token of temporary static credentials. " +
				"Defaults to `SLUICE_SESSION_TOKEN`."),
			"assume_role": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A role to sign with. The provider assumes the role with the credentials above.",
				Attributes: map[string]schema.Attribute{
					"role_arn": optional("The role's ARN. Defaults to `SLUICE_ASSUME_ROLE_ARN`, " +
						"which also works without this block."),
					"session_name": optional("The session's name in CloudTrail. " +
						"Defaults to `SLUICE_ASSUME_ROLE_SESSION_NAME`, then to `terraform-provider-sluice`."),
					"external_id": optional("The external ID, if the role's trust policy requires one. " +
						"Defaults to `SLUICE_ASSUME_ROLE_EXTERNAL_ID`."),
					"duration": length("The duration of a session, `15m` to `12h`. " +
						"The provider renews a session before it expires. " +
						"Defaults to `SLUICE_ASSUME_ROLE_DURATION`, then to `15m`."),
				},
			},
			"timeout": length("The timeout of one attempt of a request, `1ms` to `1h`. " +
				"Defaults to `SLUICE_TIMEOUT`, then to `10s`."),
			"retries": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(0, maxRetries)},
				MarkdownDescription: "The number of retries of a failed request, 0 to 10. The provider retries a " +
					"request only if a retry cannot duplicate its effect. Defaults to `SLUICE_RETRIES`, then to 3.",
			},
		},
	}
}

// unknown reports whether a value of the block is known only after apply.
func (m *settings) unknown() bool {
	for _, v := range []attr.Value{
		m.Endpoint, m.Region, m.Auth, m.Profile, m.AccessKey, m.SecretKey, m.SessionToken, m.AssumeRole, m.Timeout,
		m.Retries,
	} {
		if v.IsUnknown() {
			return true
		}
	}
	for _, v := range m.AssumeRole.Attributes() {
		if v.IsUnknown() {
			return true
		}
	}
	return false
}
