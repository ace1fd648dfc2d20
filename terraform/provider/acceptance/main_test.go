// Package acceptance runs the provider in a real OpenTofu or Terraform against the real Lambda
// function "limit". The function runs as processes on this machine, behind a gateway that verifies
// signatures, with a local DynamoDB and Redis.
package acceptance

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/localstack/lambdaproc"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/localstack/stack"
	"github.com/sluicehq/sluice/localstack/tofu"
	"github.com/sluicehq/sluice/terraform/provider/internal/provider"
)

const (
	accessKey, secretKey = "AKIDEXAMPLE", "the-secret-of-the-gateway"
	region               = "eu-central-1"

	// identityMinor is the first minor version of OpenTofu and of Terraform with resource identity.
	identityMinor = 12
)

var (
	system *stack.Stack
	tool   tofu.Tool
	built  string // the folder with the provider's binary
)

func TestMain(m *testing.M) {
	if err := prepare(context.Background()); err != nil {
		panic(err)
	}
	m.Run()
	if err := errors.Join(system.Close(), os.RemoveAll(built)); err != nil {
		panic(err)
	}
}

// prepare finds the tool, builds the provider and starts the stack. It removes the AWS, Terraform
// and Sluice settings of this machine from the environment.
func prepare(ctx context.Context) error {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "TF_") ||
			strings.HasPrefix(name, "SLUICE_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	root, err := lambdaproc.Root()
	if err != nil {
		return err
	}
	if tool, err = tofu.Find(ctx, root, identityMinor); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"TF_ACC": "1", "TF_ACC_TERRAFORM_PATH": tool.Path, "TF_ACC_PROVIDER_HOST": tool.Host(),
		"CHECKPOINT_DISABLE":        "1",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if built, err = os.MkdirTemp("", "sluice-provider-"); err != nil {
		return err
	}
	if err := tofu.BuildProvider(ctx, root, built); err != nil {
		return err
	}
	system, err = stack.Start(ctx, stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Processes: 2, Queues: []string{"orders"},
		Gateway: gateway.Config{RequireIAM: true, Credentials: map[string]string{accessKey: secretKey}},
	})
	return err
}

// environment returns the environment of the provider under test: the stack's endpoint, and
// credentials that the stack accepts. changes are pairs of a variable's name and its value.
func environment(changes ...string) func(string) string {
	env := map[string]string{
		"SLUICE_ENDPOINT": system.APIURL, "SLUICE_REGION": region, "SLUICE_ACCESS_KEY": accessKey,
		"SLUICE_SECRET_KEY": secretKey,
	}
	for i := 0; i < len(changes); i += 2 {
		env[changes[i]] = changes[i+1]
	}
	return func(name string) string { return env[name] }
}

// factories returns a constructor of the provider for the test framework, which then runs the
// provider in this process.
func factories(getenv func(string) string) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer,
		error){"sluice": providerserver.NewProtocol6WithError(provider.New("test", getenv)())}
}

// run executes the steps, in parallel with other tests, and checks that they leave no policy.
func run(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	t.Parallel()
	runAs(t, environment(), steps...)
}

// runAs is like run, but uses the given environment and does not call t.Parallel.
func runAs(t *testing.T, getenv func(string) string, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories(getenv), Steps: steps,
		CheckDestroy: gone(t)})
}

// gone returns a test check that no policy of the last state exists. It skips the policies of data
// sources, whose names start with "data-".
func gone(t *testing.T) resource.TestCheckFunc {
	t.Helper()
	return func(s *terraform.State) error {
		for _, r := range s.RootModule().Resources {
			if r.Type != "sluice_limiter_policy" || strings.HasPrefix(r.Primary.Attributes["name"], "data-") {
				continue
			}
			_, err := connect(t).GetPolicy(t.Context(), r.Primary.Attributes["name"])
			if !errors.Is(err, client.ErrPolicyNotFound) {
				return errors.New("the policy " + r.Primary.Attributes["name"] + " still exists")
			}
		}
		return nil
	}
}

// connect returns a client that reads and changes policies without Terraform.
func connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		Endpoint: system.APIURL, Region: region,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""), Timeout: 20 * time.Second,
	})
	require.NoError(t, err)
	return c
}

// name returns a name that no other test uses.
func name(prefix string) string { return redistest.Name(prefix) }
