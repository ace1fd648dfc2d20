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

const maxRetries = 10

// settings is the provider's block.
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

// role is the block's assume_role.
type role struct {
	ARN         types.String   `tfsdk:"role_arn"`
	SessionName types.String   `tfsdk:"session_name"`
	ExternalID  types.String   `tfsdk:"external_id"`
	Duration    duration.Value `tfsdk:"duration"`
}

// Schema implements provider.Provider.
func (s *sluice) Schema(_ context.Context, _ provider.SchemaRequest, answer *provider.SchemaResponse) {
	optional := func(text string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: text, Validators: validators}
	}
	sensitive := func(text string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: text,
			Validators: validators}
	}
	lasting := func(text string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, CustomType: duration.Type{}, MarkdownDescription: text}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "Limiter policies of [Sluice](https://github.com/sluicehq/sluice) as code: a limit is a pull request, and a mistake is found at " +
			"plan time. Everything goes through Sluice's API, signed with AWS Signature Version 4.",
		Attributes: map[string]schema.Attribute{
			"endpoint": optional("The URL of the API: the module's output `endpoint`. Else `SLUICE_ENDPOINT`. One of the two is required."),
			"region": optional("The region to sign for, where the endpoint does not name it because it is a domain of your own. Else `SLUICE_REGION`, " +
				"else that of the AWS configuration."),
			"auth": optional("`aws_iam` (the default) signs requests; `none` does not, and is for the local stack. Else `SLUICE_AUTH`.",
				stringvalidator.OneOf(string(client.AuthIAM), string(client.AuthNone))),
			"profile": optional("The profile of the shared AWS configuration that signs. Else `SLUICE_PROFILE`, else the AWS SDK's usual chain.",
				stringvalidator.ConflictsWith(path.MatchRoot("access_key"))),
			"access_key": sensitive("A static access key. Else `SLUICE_ACCESS_KEY`.",
				stringvalidator.AlsoRequires(path.MatchRoot("secret_key"))),
			"secret_key": sensitive("The secret of `access_key`. Else `SLUICE_SECRET_KEY`.",
				stringvalidator.AlsoRequires(path.MatchRoot("access_key"))),
			"session_token": sensitive("The session token of temporary static credentials. Else `SLUICE_SESSION_TOKEN`."),
			"assume_role": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "A role to assume with the credentials above, and to sign with.",
				Attributes: map[string]schema.Attribute{
					"role_arn":     optional("The role's ARN. Else `SLUICE_ASSUME_ROLE_ARN`, which also works without this block."),
					"session_name": optional("Names the session in CloudTrail. Else `SLUICE_ASSUME_ROLE_SESSION_NAME`, else `terraform-provider-sluice`."),
					"external_id":  optional("What the role's trust policy may ask for. Else `SLUICE_ASSUME_ROLE_EXTERNAL_ID`."),
					"duration":     lasting("How long the session lasts, `15m` to `12h`. Else `SLUICE_ASSUME_ROLE_DURATION`, else `15m`; it is renewed in time."),
				},
			},
			"timeout": lasting("For one attempt of a request. Else `SLUICE_TIMEOUT`, else `10s`."),
			"retries": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(0, maxRetries)},
				MarkdownDescription: "How often a failed request is repeated, where that cannot do a thing twice: 0 to 10. Else `SLUICE_RETRIES`, else 3.",
			},
		},
	}
}

// unknown reports whether a part of the block is known only after apply.
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
