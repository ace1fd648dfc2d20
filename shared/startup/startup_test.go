package startup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// environment returns an Env with the variables that Lambda sets and the variables in vars.
func environment(vars map[string]string) *Env {
	all := map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "key",
		"AWS_SESSION_TOKEN": "session/token==",
	}
	maps.Copy(all, vars)
	return NewEnv("test", func(name string) string { return all[name] }, io.Discard)
}

func parseToken(t *testing.T, token string) *url.URL {
	t.Helper()
	parsed, err := url.Parse("http://" + token)
	require.NoError(t, err)
	return parsed
}

func TestNewEnv(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ namespace, want string }{
		"uses the namespace of the deployment": {"Sluice/prod", "Sluice/prod"},
		"uses the default namespace":           {"", telemetry.DefaultNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			vars := map[string]string{"SLUICE_METRICS_NAMESPACE": tc.namespace, "SLUICE_LOG_LEVEL": "error"}
			env := NewEnv("lock", func(name string) string { return vars[name] }, &out)
			env.Log.Warn("quiet")
			env.Metrics.Emit(nil, telemetry.Span("lock_hold", time.Millisecond))
			require.Contains(t, out.String(), `"Namespace":"`+tc.want+`"`)
			require.NotContains(t, out.String(), "quiet", "the level is error")
			require.Contains(t, out.String(), `"function":"lock"`)
		})
	}
}

func TestErr(t *testing.T) {
	t.Parallel()

	t.Run("reports every mistake", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"SLUICE_REDIS_CLUSTER": "yes", "AWS_REGION": ""})
		require.NoError(t, env.Err())
		require.Nil(t, env.Redis(redisconn.Config{}))
		env.Table("SLUICE_POLICY_TABLE", "policies")
		env.DynamoDB()
		env.AWS()
		require.Len(t, problems(env.Err()), 4)
		require.EqualError(t, env.Err(), "SLUICE_REDIS_URL is not set; give a redis:// or rediss:// URL\n"+
			`SLUICE_REDIS_CLUSTER is "yes"; give true or false`+"\n"+
			"SLUICE_POLICY_TABLE is not set; give the name of the DynamoDB table of the policies\n"+
			"AWS_REGION is not set; outside of Lambda, set it yourself")
	})

}

func TestRun(t *testing.T) {
	t.Parallel()

	run := func(build Build) (status int, printed string) {
		var errOut bytes.Buffer
		status = Run("limit", build, func(string) string { return "" }, io.Discard, &errOut)
		return status, errOut.String()
	}

	t.Run("prints each mistake in the environment on its own line", func(t *testing.T) {
		t.Parallel()
		status, printed := run(func(_ context.Context, env *Env) (any, error) {
			env.Redis(redisconn.Config{})
			env.Table("SLUICE_POLICY_TABLE", "policies")
			return nil, env.Err()
		})
		require.Equal(t, 1, status)
		require.Equal(t, "limit: SLUICE_REDIS_URL is not set; give a redis:// or rediss:// URL\n"+
			"limit: SLUICE_POLICY_TABLE is not set; give the name of the DynamoDB table of the policies\n", printed)
	})

	t.Run("prints any other error", func(t *testing.T) {
		t.Parallel()
		status, printed := run(func(context.Context, *Env) (any, error) { return nil, errors.New("broken") })
		require.Equal(t, 1, status)
		require.Equal(t, "limit: broken\n", printed)
	})
}

func TestAWS(t *testing.T) {
	t.Parallel()

	t.Run("uses the credentials of the function's role", func(t *testing.T) {
		t.Parallel()
		env := environment(nil)
		cfg := env.AWS()
		require.NoError(t, env.Err())
		require.Equal(t, "eu-central-1", cfg.Region)
		require.Nil(t, cfg.BaseEndpoint, "nil means the endpoints of AWS")
		got, err := cfg.Credentials.Retrieve(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"AKIDEXAMPLE", "key", "session/token=="},
			[]string{got.AccessKeyID, got.SecretAccessKey, got.SessionToken})
	})

	t.Run("uses the endpoint of a local AWS", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"})
		require.Equal(t, "http://127.0.0.1:4566", aws.ToString(env.AWS().BaseEndpoint))
	})

	t.Run("names the variables that are missing", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
			env := environment(map[string]string{name: ""})
			env.AWS()
			require.EqualError(t, env.Err(), name+" is not set; outside of Lambda, set it yourself")
		}
		env := environment(map[string]string{"AWS_REGION": "", "AWS_ACCESS_KEY_ID": ""})
		env.AWS()
		require.ErrorContains(t, env.Err(), "AWS_REGION and AWS_ACCESS_KEY_ID are not set")
	})
}

func TestRedis(t *testing.T) {
	t.Parallel()

	t.Run("reads the addresses and keeps the given timeouts", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{
			"SLUICE_REDIS_URL": "redis://a:1, redis://b:2,", "SLUICE_REDIS_CLUSTER": "true",
		})
		cfg := env.redisConfig(redisconn.Config{CallTimeout: time.Second, PoolSize: 3})
		require.NoError(t, env.Err())
		require.Equal(t, redisconn.Config{
			URLs: []string{"redis://a:1", "redis://b:2"}, Cluster: true, CallTimeout: time.Second, PoolSize: 3,
		}, cfg, "without Credentials, the password in the URL is used")
		require.NotNil(t, env.Redis(redisconn.Config{}))
	})

	t.Run("iam: signs tokens with the function's own role", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{
			"SLUICE_REDIS_URL": "rediss://a:1", "SLUICE_REDIS_AUTH": "iam", "SLUICE_REDIS_USER": "sluice-functions",
			"SLUICE_REDIS_IAM_RESOURCE": "sluice", "SLUICE_REDIS_SERVERLESS": "true",
		})
		cfg := env.redisConfig(redisconn.Config{})
		require.NoError(t, env.Err())
		require.Positive(t, cfg.MaxConnAge)
		require.Less(t, cfg.MaxConnAge, 12*time.Hour, "ElastiCache closes a connection after 12 hours")
		user, token, err := cfg.Credentials(t.Context())
		require.NoError(t, err)
		require.Equal(t, "sluice-functions", user)
		parsed := parseToken(t, token)
		require.Equal(t, "sluice", parsed.Host)
		require.Equal(t, "ServerlessCache", parsed.Query().Get("ResourceType"))
		require.Contains(t, parsed.Query().Get("X-Amz-Credential"), "AKIDEXAMPLE/")
	})

	t.Run("password: reads the secret when the first connection is made", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{
			"SLUICE_REDIS_URL": "rediss://a:1", "SLUICE_REDIS_AUTH": "password", "SLUICE_REDIS_SECRET_ARN": "arn",
			"AWS_ENDPOINT_URL": "http://127.0.0.1:1", // nothing listens there
		})
		cfg := env.redisConfig(redisconn.Config{})
		require.NoError(t, env.Err())
		require.NotNil(t, cfg.Credentials)
	})
}

func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vars map[string]string
		want string
	}{
		"a URL with an unsupported scheme": {map[string]string{"SLUICE_REDIS_URL": "http://localhost"},
			"SLUICE_REDIS_URL: error configuring redis: redis URL is not valid: redis: invalid URL scheme: http; " +
				"give a redis:// or rediss:// URL"},
		"an unknown authentication": {map[string]string{"SLUICE_REDIS_AUTH": "kerberos"},
			`SLUICE_REDIS_AUTH is "kerberos"; give none, password or iam`},
		"a password without a secret": {map[string]string{"SLUICE_REDIS_AUTH": "password"},
			"SLUICE_REDIS_SECRET_ARN is not set; SLUICE_REDIS_AUTH=password needs the ARN of the secret with the " +
				"password"},
		"iam without a user": {map[string]string{"SLUICE_REDIS_AUTH": "iam", "SLUICE_REDIS_IAM_RESOURCE": "c"},
			"SLUICE_REDIS_USER is not set; SLUICE_REDIS_AUTH=iam needs the name of the ElastiCache user"},
		"iam without a cache": {map[string]string{"SLUICE_REDIS_AUTH": "iam", "SLUICE_REDIS_USER": "u"},
			"SLUICE_REDIS_IAM_RESOURCE is not set; SLUICE_REDIS_AUTH=iam needs the name of the replication group or " +
				"serverless cache"},
		"iam outside of AWS": {map[string]string{
			"SLUICE_REDIS_AUTH": "iam", "SLUICE_REDIS_USER": "u", "SLUICE_REDIS_IAM_RESOURCE": "c",
			"AWS_ACCESS_KEY_ID": "",
		}, "AWS_ACCESS_KEY_ID is not set; outside of Lambda, set it yourself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{"SLUICE_REDIS_URL": "redis://a:1"}
			maps.Copy(vars, tc.vars)
			env := environment(vars)
			env.Redis(redisconn.Config{})
			require.EqualError(t, env.Err(), tc.want)
		})
	}
}

func TestLockNodes(t *testing.T) {
	t.Parallel()

	t.Run("iam: each node has tokens for its own cache", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{
			"SLUICE_LOCK_NODES": "rediss://a:1,rediss://b:1", "SLUICE_LOCK_USER": "sluice-functions",
			"SLUICE_LOCK_IAM_RESOURCES": "sluice-quorum-1,sluice-quorum-2",
		})
		nodes := env.lockNodeConfigs()
		require.NoError(t, env.Err())
		require.Len(t, nodes, 2)
		for i, want := range []string{"sluice-quorum-1", "sluice-quorum-2"} {
			require.Len(t, nodes[i].URLs, 1, "each node is a server of its own, not a seed of a cluster")
			_, token, err := nodes[i].Credentials(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, parseToken(t, token).Host)
		}
		require.Len(t, env.LockNodes(time.Second), 2)
	})

	t.Run("no IAM resources: uses the passwords in the URLs", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"SLUICE_LOCK_NODES": "redis://a:1"})
		require.Nil(t, env.lockNodeConfigs()[0].Credentials)
		require.NoError(t, env.Err())
	})

	t.Run("no URLs: there is no quorum", func(t *testing.T) {
		t.Parallel()
		env := environment(nil)
		require.Empty(t, env.LockNodes(time.Second))
		require.NoError(t, env.Err())
	})

	t.Run("refuses lists of different lengths", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"SLUICE_LOCK_NODES": "redis://a:1,redis://b:1",
			"SLUICE_LOCK_IAM_RESOURCES": "a"})
		env.LockNodes(time.Second)
		require.EqualError(t, env.Err(), "SLUICE_LOCK_IAM_RESOURCES lists 1 caches and SLUICE_LOCK_NODES lists 2 "+
			"URLs; give one cache for each URL, in the same order")
	})

	t.Run("refuses caches without a user", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"SLUICE_LOCK_NODES": "redis://a:1", "SLUICE_LOCK_IAM_RESOURCES": "a"})
		env.LockNodes(time.Second)
		require.ErrorContains(t, env.Err(), "SLUICE_LOCK_USER is not set")
	})
}
