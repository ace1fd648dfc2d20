package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/sluicehq/sluice/client"
)

// connect returns a client for the global flags and the environment.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	endpoint := first(a.endpoint, a.Getenv("SLUICE_ENDPOINT"))
	if endpoint == "" {
		return nil, usageError{errors.New("the endpoint is missing: set SLUICE_ENDPOINT or --endpoint to the URL " +
			"of the API; the local stack (go run ./localstack up) is at http://127.0.0.1:4000")}
	}

	cfg := client.Config{
		Endpoint:  endpoint,
		Auth:      client.Auth(first(a.auth, a.Getenv("SLUICE_AUTH"))),
		Region:    a.region,
		Timeout:   time.Duration(a.timeout),
		UserAgent: "sluice-cli/" + version(),
	}
	if a.profile != "" && cfg.Auth != client.AuthNone {
		if err := useProfile(ctx, &cfg, a.profile); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// useProfile sets cfg.Credentials from a profile, and cfg.Region if it is empty.
func useProfile(ctx context.Context, cfg *client.Config, profile string) error {
	loaded, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithSharedConfigProfile(profile))
	if err != nil {
		return fmt.Errorf("error reading the AWS profile %q: %w", profile, err)
	}
	cfg.Credentials = loaded.Credentials
	cfg.Region = first(cfg.Region, loaded.Region)
	return nil
}

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
