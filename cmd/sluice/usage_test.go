package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrongUsageIsOneLineThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"lokc"}, `there is no command "lokc" in "sluice"; did you mean "lock"? (--help tells more)`},
		{[]string{"jobs", "psh"},
			`there is no command "psh" in "sluice jobs"; did you mean "push"? (--help tells more)`},
		{[]string{"jobs", "list"},
			"wrong number of arguments: it is sluice jobs list QUEUE [flags] (--help tells more)"},
		{[]string{"--speed"}, "unknown flag: --speed (--help tells more)"},
		{[]string{"jobs", "push", "orders", "1", "--delay", "5"},
			`invalid argument "5" for "--delay" flag: must be a number with a unit, such as 500ms, 90s, 5m, 1h30m, 2d or 1w (--help tells more)`},
		{[]string{"jobs", "push", "orders", "text"}, `the payload is not JSON: quote a text twice, as '"text"'`},
		{[]string{"lock", "run", "a", "ls"},
			"give one name, and the command after --: sluice lock run NAME -- COMMAND"},
		{[]string{"lock", "run", "a", "--ttl", "2s", "--grace", "1s", "--", "ls"},
			"--grace must be less than half of --ttl, 1s, so that the command ends before the lease does"},
		{[]string{"lock", "run", "a", "--ttl", "100ms", "--", "ls"}, "--ttl must be 1s to 1h"},
		{[]string{"lock", "release", "a"}, "give --token, or --force to take the lock from whoever holds it"},
		{[]string{"lock", "status", "a/b"},
			`error inspecting the lock "a/b": name: must start with a letter or digit, hold only letters, digits and . _ : -, and be 1 to 128 characters long`},
		{[]string{"health", "--auth", "basic"}, `auth "basic" does not exist: it must be "aws_iam" or "none"`},
	} {
		_, errOut, code := sluice(t, test.args...)
		require.Equal(t, "sluice: "+test.want+"\n", errOut)
		require.Equal(t, 2, code)
	}
}

func TestWithoutAnEndpointItSaysWhereTheLocalStackIs(t *testing.T) {
	t.Parallel()
	p := command(t, "", "health")
	p.start(t)
	require.Equal(t, 2, p.wait(t))
	require.Equal(t, "sluice: no endpoint: set SLUICE_ENDPOINT or --endpoint to the URL of the API; "+
		"the local stack (go run ./localstack up) is http://127.0.0.1:4000\n", p.err.String())
}

func TestAnAPIThatIsNotThereIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback listen does not wait
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, errOut, code := sluice(t, "--endpoint", "http://"+listener.Addr().String(), "health")
	require.Equal(t, 5, code)
	require.Contains(t, errOut, "sluice: error checking the health of the API: the API is unreachable: dial tcp")
}

func TestAnotherMachineIsAskedWithASignature(t *testing.T) {
	t.Parallel()
	p := command(t, "https://abc123.execute-api.eu-central-1.amazonaws.com", "jobs", "stats")
	p.Env = append(p.Env, "AWS_EC2_METADATA_DISABLED=true")
	p.start(t)
	require.Equal(t, 1, p.wait(t))
	require.Contains(t, p.err.String(), "error getting AWS credentials", "nothing is sent without")

	p = command(t, "https://abc123.execute-api.eu-central-1.amazonaws.com", "jobs", "stats", "--profile", "nobody")
	p.start(t)
	require.Equal(t, 1, p.wait(t))
	require.Contains(t, p.err.String(), `error reading the AWS profile "nobody"`)
}

func TestHealthIsATable(t *testing.T) {
	t.Parallel()
	out := does(t, "health")
	require.Regexp(t, `(?m)^CHECK +STATUS +TOOK +DETAIL$`, out)
	require.Regexp(t, `(?m)^redis +ok +\d+\.\d+ms$`, out)
}

func TestCompletionAndVersionNeedNoEndpoint(t *testing.T) {
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
}
