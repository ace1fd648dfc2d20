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

// credentialsWait bounds the search for credentials: the last place that the SDK asks, the metadata
// service, may not answer at all.
const credentialsWait = 15 * time.Second

func (r *role) present() bool { return r.ARN.ValueString() != "" }

// identify finds the credentials that sign, and reports whether there are any: static ones, those
// of a profile, or else those of the AWS SDK's chain; and with them those of the role, if there is
// one.
func (m *settings) identify(ctx context.Context, r *role, cfg *client.Config, diags *diag.Diagnostics) bool {
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
	bounded, cancel := context.WithTimeout(ctx, credentialsWait)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(bounded); err != nil {
		diags.AddAttributeError(at, "No AWS credentials",
			"Requests to Sluice are signed, and there is nothing to sign them with. Set profile, assume_role or "+
				"static credentials in the provider's block, or what the AWS SDK looks for, such as AWS_PROFILE. For the local stack set auth = \"none\".\n\n"+sentence(err))
		return false
	}
	return true
}

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
			if ms, known := r.Duration.Milliseconds(); known {
				o.Duration = time.Duration(ms) * time.Millisecond
			}
		}))
}
