package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"
)

// fails checks that the plan of a configuration fails. It returns the plan's output on one line,
// without the frame that Terraform draws around errors.
func fails(t *testing.T, configuration string, env ...string) string {
	t.Helper()
	w := workspace(t, env...)
	require.NoError(t, w.Write(requires+configuration))
	out, err := w.Run(t.Context(), "plan", "-no-color", "-input=false")
	require.Error(t, err, out)
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(out)), " ")
}

// two is a configuration with one resource and two data sources. Terraform must report a mistake in
// the provider block only once, and not again for each of these three.
const two = `
resource "sluice_limiter_policy" "a" {
  name  = "a"
  rules = [{ name = "r", algorithm = "gcra", limit = 1, window = "1s" }]
}

data "sluice_limiter_policies" "all" {}

data "sluice_limiter_policy" "b" {
  name = "b"
}
`

func TestProviderBlock(t *testing.T) {
	t.Parallel()
	t.Run("reports each mistake once", func(t *testing.T) {
		t.Parallel()
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>welcome</html>"))
		}))
		t.Cleanup(page.Close)
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"message":"Not Found"}`))
		}))
		t.Cleanup(other.Close)
		none := []string{"SLUICE_ACCESS_KEY=", "SLUICE_SECRET_KEY="}
		for title, c := range map[string]struct {
			block string
			env   []string
			want  string
		}{
			"no endpoint":                   {"", []string{"SLUICE_ENDPOINT="}, "The endpoint is missing"},
			"an endpoint that is not a URL": {`endpoint = "abc123"`, nil, `"abc123" is not a URL such as https://`},
			"an endpoint with a query":      {`endpoint = "https://example.org/?a=b"`, nil, "must have no query"},
			"an endpoint that does not listen": {"endpoint = \"http://127.0.0.1:1\"\n retries = 0", nil,
				"Sluice cannot be reached"},
			"a web page at the endpoint":           {fmt.Sprintf("endpoint = %q", page.URL), nil, "check the endpoint"},
			"another API at the endpoint":          {`endpoint = "` + other.URL + `"`, nil, "check the endpoint"},
			"no credentials":                       {"", none, "No AWS credentials"},
			"half of the credentials":              {"", []string{"SLUICE_SECRET_KEY="}, "credentials are incomplete"},
			"half of the credentials in the block": {`access_key = "AKIDEXAMPLE"`, none, "secret_key"},
			"a key and a profile": {
				"profile = \"x\"\n access_key = \"k\"\n secret_key = \"s\"", nil, "access_key",
			},
			"a profile that does not exist": {`profile = "night-shift"`, none, "night-shift"},
			"no region":                     {"", []string{"SLUICE_REGION="}, "region"},
			"an unknown authentication":     {`auth = "basic"`, nil, `"aws_iam"`},
			"a role without an ARN":         {"assume_role = {}", nil, "The role is missing"},
			"a timeout that is no duration": {`timeout = "soon"`, nil, "must be a length of time"},
			"a timeout of 0":                {`timeout = "0s"`, nil, "The timeout is out of range"},
			"too many retries":              {"retries = 11", nil, "between 0 and 10"},
			"retries that are not a number": {"", []string{"SLUICE_RETRIES=many"}, "RETRIES must be 0 to 10"},
			"a bad timeout in the environment": {
				"", []string{"SLUICE_TIMEOUT=soon"}, "SLUICE_TIMEOUT must be a length of time",
			},
		} {
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				output := fails(t, fmt.Sprintf("provider \"sluice\" {\n  %s\n}\n", c.block)+two, c.env...)
				require.Contains(t, output, c.want)
				require.Equal(t, 1, strings.Count(output, "Error: "), output)
				require.NotContains(t, output, secretKey)
			})
		}
	})

	t.Run("reports an incorrect secret key", func(t *testing.T) {
		t.Parallel()
		output := fails(t, "data \"sluice_limiter_policies\" \"all\" {}", "SLUICE_SECRET_KEY=wrong")
		require.Contains(t, output, "check the credentials, the region, the clock")
	})

	t.Run("reports an endpoint that does not answer within the timeout", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(hung.Close)
		t.Cleanup(func() { close(release) })
		started := time.Now()
		block := fmt.Sprintf("provider \"sluice\" {\n  endpoint = %q\n  timeout = \"300ms\"\n  retries = 1\n}\n",
			hung.URL)
		output := fails(t, block+two)
		require.Contains(t, output, "no answer within 300ms")
		require.Less(t, time.Since(started), 20*time.Second)
	})

	t.Run("signs with every kind of credentials", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		shared := filepath.Join(folder, "credentials")
		profile := "[night]\naws_access_key_id = " + accessKey + "\naws_secret_access_key = " + secretKey + "\n"
		require.NoError(t, os.WriteFile(shared, []byte(profile), 0o600))
		role := newRole(t)
		none := []string{"SLUICE_ACCESS_KEY=", "SLUICE_SECRET_KEY=", "AWS_SHARED_CREDENTIALS_FILE=" + shared}
		for title, c := range map[string]struct {
			block string
			env   []string
		}{
			"static credentials in the block": {
				fmt.Sprintf("access_key = %q\n secret_key = %q\n region = %q", accessKey, secretKey, region),
				[]string{"SLUICE_ACCESS_KEY=", "SLUICE_SECRET_KEY=", "SLUICE_REGION="},
			},
			"static credentials in the environment": {"", nil},
			"a profile in the block":                {`profile = "night"`, none},
			"a profile in the environment":          {"", append([]string{"SLUICE_PROFILE=night"}, none...)},
			"the default chain of the AWS SDK": {"", []string{"SLUICE_ACCESS_KEY=", "SLUICE_SECRET_KEY=",
				"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey}},
			"a role in the block": {
				fmt.Sprintf(`assume_role = {
    role_arn = %q, session_name = "deploy", external_id = "x-1", duration = "30m"
  }`, role.arn),
				[]string{"AWS_ENDPOINT_URL_STS=" + role.url},
			},
			"a role in the environment": {"", []string{
				"SLUICE_ASSUME_ROLE_ARN=" + role.arn, "SLUICE_ASSUME_ROLE_EXTERNAL_ID=x-1",
				"AWS_ENDPOINT_URL_STS=" + role.url,
			}},
		} {
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				apply(t, workspace(t, c.env...), fmt.Sprintf("provider \"sluice\" {\n  %s\n}\n",
					c.block)+`data "sluice_limiter_policies" "all" {}`)
			})
		}
	})

	t.Run("sends unsigned requests if auth is none", func(t *testing.T) {
		t.Parallel()
		output := fails(t, "provider \"sluice\" {\n  auth = \"none\"\n}\n data \"sluice_limiter_policies\" \"all\" {}",
			"SLUICE_ACCESS_KEY=", "SLUICE_SECRET_KEY=")
		require.Contains(t, output, "the gateway refused the request")
	})

	// On the first apply, the endpoint is an output of the module in the same configuration.
	t.Run("accepts an endpoint that exists only after apply", func(t *testing.T) {
		n := name("first-apply")
		t.Parallel()
		runAs(t, environment("SLUICE_ENDPOINT", ""), resource.TestStep{Config: fmt.Sprintf(`
resource "terraform_data" "module" {
  input = %q
}

provider "sluice" {
  endpoint = terraform_data.module.output
}
`, system.APIURL) + simple(n, 5, "")})
	})

	t.Run("reports a data source that needs an unknown endpoint", func(t *testing.T) {
		t.Parallel()
		runAs(t, environment("SLUICE_ENDPOINT", ""), resource.TestStep{Config: fmt.Sprintf(`
resource "terraform_data" "module" {
  input = %q
}

provider "sluice" {
  endpoint = terraform_data.module.output
}

data "sluice_limiter_policies" "all" {}
`, system.APIURL), ExpectError: regexp.MustCompile(`configuration is not known yet`)})
	})
}
