package awsenv_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/awsenv"
)

func lambda(vars map[string]string) func(string) string {
	env := map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
		"AWS_SESSION_TOKEN": "session"}
	maps.Copy(env, vars)
	return func(name string) string { return env[name] }
}

func TestTheRoleOfTheFunctionSigns(t *testing.T) {
	t.Parallel()
	cfg, err := awsenv.Config(lambda(nil))
	require.NoError(t, err)
	require.Equal(t, "eu-central-1", cfg.Region)
	require.Nil(t, cfg.BaseEndpoint, "AWS is where the SDK knows it to be")
	got, err := cfg.Credentials.Retrieve(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"id", "key", "session"}, []string{got.AccessKeyID, got.SecretAccessKey, got.SessionToken})
}

func TestALocalAWSIsReachedAtItsEndpoint(t *testing.T) {
	t.Parallel()
	cfg, err := awsenv.Config(lambda(map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}))
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:4566", aws.ToString(cfg.BaseEndpoint))
}

func TestOutsideOfLambdaTheMissingVariablesAreNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		_, err := awsenv.Config(lambda(map[string]string{name: ""}))
		require.ErrorContains(t, err, name)
	}
}
