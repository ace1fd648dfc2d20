package provider

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sluicehq/sluice/client"
)

// credentialsTimeout bounds the search for credentials. The last source that the SDK queries, the
// instance metadata service, may never respond.
const credentialsTimeout = 15 * time.Second

// present reports whether the configuration names a role to assume.
func (r *role) present() bool { return r.ARN.ValueString() != "" }

// findCredentials sets the credentials and the region that sign requests. If it finds no
// credentials, it adds an error and returns false. It prefers static credentials to the profile,
// and the profile to the AWS SDK's default chain. If a role is configured, these credentials only
// assume the role, and the role's credentials sign the requests.
func (m *settings) findCredentials(ctx context.Context, r *role, cfg *client.Config, diags *diag.Diagnostics) bool {
	var options []func(*awsconfig.LoadOptions) error
	at := path.Root("profile")
	if m.Region.ValueString() != "" {
		options = append(options, awsconfig.WithRegion(m.Region.ValueString()))
	}
	if key := m.AccessKey.ValueString(); key != "" {
		static := credentials.NewStaticCredentialsProvider(key, m.SecretKey.ValueString(), m.SessionToken.ValueString())
		options, at = append(options, awsconfig.WithCredentialsProvider(static)), path.Root("access_key")
	} else if profile := m.Profile.ValueString(); profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(profile))
	}
	shared, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		diags.AddAttributeError(at, "The AWS configuration cannot be used", sentence(err))
		return false
	}
	cfg.Credentials = shared.Credentials
	if cfg.Region == "" {
		cfg.Region = shared.Region
	}
	if r.present() {
		at = path.Root("assume_role")
		cfg.Credentials = r.assume(shared)
	}
	bounded, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(bounded); err != nil {
		diags.AddAttributeError(at, "No AWS credentials",
			"Requests to Sluice are signed, but no credentials were found. Set profile, assume_role or static "+
				"credentials in the provider block, or configure the AWS SDK, for example with AWS_PROFILE. "+
				"For the local stack, set auth = \"none\".\n\n"+sentence(err))
		return false
	}
	return true
}

// assume returns a provider of the role's credentials. It renews the credentials before they
// expire.
func (r *role) assume(shared aws.Config) aws.CredentialsProvider {
	return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(shared), r.ARN.ValueString(),
		func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = "terraform-provider-sluice"
			if name := r.SessionName.ValueString(); name != "" {
				o.RoleSessionName = name
			}
			if id := r.ExternalID.ValueString(); id != "" {
				o.ExternalID = aws.String(id)
			}
			if length, ok := r.Duration.Duration(); ok {
				o.Duration = length
			}
		}))
}
