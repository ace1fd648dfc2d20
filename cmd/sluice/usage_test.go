package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	t.Run("reports each error in one line with a remedy", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct {
			args []string
			want string
		}{
			{[]string{"lokc"}, `"sluice" has no command "lokc"; did you mean "lock"? (see --help)`},
			{[]string{"jobs", "psh"},
				`"sluice jobs" has no command "psh"; did you mean "push"? (see --help)`},
			{[]string{"jobs", "list"},
				"wrong number of arguments; the usage is: sluice jobs list QUEUE [flags] (see --help)"},
			{[]string{"--speed"}, "unknown flag: --speed (see --help)"},
			{[]string{"jobs", "push", "orders", "1", "--delay", "5"},
				`invalid argument "5" for "--delay" flag: must be a number with a unit, ` +
					`such as 500ms, 90s, 5m, 1h30m, 2d or 1w (see --help)`},
			{[]string{"jobs", "push", "orders", "text"},
				`the payload is not JSON; a JSON string needs double quotes: '"text"'`},
			{[]string{"lock", "run", "a", "ls"},
				"give one name, and the command after --: sluice lock run NAME -- COMMAND"},
			{[]string{"lock", "run", "a", "--ttl", "2s", "--grace", "1s", "--", "ls"},
				"--grace must be less than half of --ttl, 1s, so that the command ends before the lease does"},
			{[]string{"lock", "run", "a", "--ttl", "100ms", "--", "ls"}, "--ttl must be 1s to 1h"},
			{[]string{"lock", "release", "a"}, "give either --token, or --force to release the lock of any holder"},
			{[]string{"lock", "status", "a/b"},
				`error inspecting the lock "a/b": name: must start with a letter or digit, ` +
					`hold only letters, digits and . _ : -, and be 1 to 128 characters long`},
			{[]string{"jobs", "push", "orders", "1", "--header", "tenant"},
				`invalid argument "tenant" for "--header" flag: must be name=value (see --help)`},
			{[]string{"health", "--auth", "basic"}, `auth "basic" does not exist: it must be "aws_iam" or "none"`},
		} {
			_, errOut, code := sluice(t, test.args...)
			require.Equal(t, "sluice: "+test.want+"\n", errOut)
			require.Equal(t, 2, code)
		}
	})

	t.Run("requires an endpoint", func(t *testing.T) {
		t.Parallel()
		p := command(t, "", "health")
		p.start(t)
		require.Equal(t, 2, p.wait(t))
		require.Equal(t, "sluice: the endpoint is missing: set SLUICE_ENDPOINT or --endpoint to the URL of the API; "+
			"the local stack (go run ./localstack up) is at http://127.0.0.1:4000\n", p.err.String())
	})

	t.Run("requires no endpoint for completion, version and help", func(t *testing.T) {
		t.Parallel()
		for want, args := range map[string][]string{
			"bash completion": {"completion", "bash"}, "sluice ": {"version"}, `"version"`: {"version", "--json"},
			"Usage:": {"jobs"}, "Examples:": {"help", "lock", "run"},
		} {
			p := command(t, "", args...)
			p.start(t)
			require.Zero(t, p.wait(t))
			require.Contains(t, p.out.String(), want)
			require.Empty(t, p.err.String())
		}
	})
}

func TestConnect(t *testing.T) {
	t.Parallel()
	t.Run("exits with 5 if the API is unreachable", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		_, errOut, code := sluice(t, "--endpoint", "http://"+listener.Addr().String(), "health")
		require.Equal(t, 5, code)
		require.Contains(t, errOut, "sluice: error checking the health of the API: the API is unreachable: dial tcp")
	})

	t.Run("signs requests to another machine", func(t *testing.T) {
		t.Parallel()
		p := command(t, "https://abc123.execute-api.eu-central-1.amazonaws.com", "jobs", "stats")
		p.Env = append(p.Env, "AWS_EC2_METADATA_DISABLED=true")
		p.start(t)
		require.Equal(t, 1, p.wait(t))
		require.Contains(t, p.err.String(), "error getting AWS credentials", "nothing is sent without credentials")

		p = command(t, "https://abc123.execute-api.eu-central-1.amazonaws.com", "jobs", "stats", "--profile", "nobody")
		p.start(t)
		require.Equal(t, 1, p.wait(t))
		require.Contains(t, p.err.String(), `error reading the AWS profile "nobody"`)
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	out := does(t, "health")
	require.Regexp(t, `(?m)^CHECK +STATUS +TOOK +DETAIL$`, out)
	require.Regexp(t, `(?m)^redis +ok +\d+\.\d+ms$`, out)
}
