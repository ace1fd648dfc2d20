package cli

import (
	"context"
	"fmt"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice/client"
)

// useProfile takes the credentials, and the region where none is given, from a profile.
func useProfile(ctx context.Context, cfg *client.Config, profile string) error {
	loaded, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithSharedConfigProfile(profile))
	if err != nil {
		return fmt.Errorf("error reading the AWS profile %q: %w", profile, err)
	}
	cfg.Credentials = loaded.Credentials
	cfg.Region = first(cfg.Region, loaded.Region)
	return nil
}
