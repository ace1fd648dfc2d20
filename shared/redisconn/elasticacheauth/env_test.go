package elasticacheauth_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/redisconn/elasticacheauth"
)

// lookup is the environment of a function: what Lambda sets, and vars.
func lookup(vars map[string]string) func(string) string {
	env := map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secretKey,
		"AWS_SESSION_TOKEN": "session/token==",
	}
	maps.Copy(env, vars)
	return func(name string) string { return env[name] }
}

func TestTheEnvironmentSaysHowToBeLetIn(t *testing.T) {
	t.Parallel()
	plain, err := elasticacheauth.FromEnv(lookup(map[string]string{"SLUICE_REDIS_URL": "redis://a:1"}))
	require.NoError(t, err)
	require.Nil(t, plain.Credentials, "the URL says it all")

	iam, err := elasticacheauth.FromEnv(lookup(map[string]string{
		"SLUICE_REDIS_URL": "rediss://a:1", "SLUICE_REDIS_CLUSTER": "true", "SLUICE_REDIS_AUTH": "iam",
		"SLUICE_REDIS_USER":         "sluice-functions",
		"SLUICE_REDIS_IAM_RESOURCE": "sluice", "SLUICE_REDIS_SERVERLESS": "true",
	}))
	require.NoError(t, err)
	require.True(t, iam.Cluster)
	require.Less(t, iam.MaxConnAge, 12*time.Hour, "ElastiCache ends a connection after 12 hours")
	user, token, err := iam.Credentials(t.Context())
	require.NoError(t, err)
	require.Equal(t, "sluice-functions", user)
	require.Equal(t, "ServerlessCache", parse(t, token).Query().Get("ResourceType"))
	require.Contains(t, parse(t, token).Query().Get("X-Amz-Credential"), "AKIDEXAMPLE/",
		"the function's own role must sign")
}

func TestEachQuorumNodeHasTokensOfItsOwn(t *testing.T) {
	t.Parallel()
	nodes, err := elasticacheauth.LockNodesFromEnv(lookup(map[string]string{
		"SLUICE_LOCK_NODES": "rediss://a:1,rediss://b:1", "SLUICE_LOCK_USER": "sluice-functions",
		"SLUICE_LOCK_IAM_RESOURCES": "sluice-quorum-1,sluice-quorum-2",
	}))
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	for i, want := range []string{"sluice-quorum-1", "sluice-quorum-2"} {
		require.Len(t, nodes[i].URLs, 1, "a node is no seed of a cluster")
		_, token, err := nodes[i].Credentials(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, parse(t, token).Host)
	}
	none, err := elasticacheauth.LockNodesFromEnv(lookup(nil))
	require.NoError(t, err)
	require.Empty(t, none)
	open, err := elasticacheauth.LockNodesFromEnv(lookup(map[string]string{"SLUICE_LOCK_NODES": "redis://a:1"}))
	require.NoError(t, err)
	require.Nil(t, open[0].Credentials)
}

func TestAnEnvironmentThatCannotWorkIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vars map[string]string
		want string
	}{
		"no URL": {map[string]string{}, "SLUICE_REDIS_URL is not set"},
		"an unknown way": {map[string]string{"SLUICE_REDIS_URL": "redis://a:1",
			"SLUICE_REDIS_AUTH": "kerberos"}, "it must be none, password or iam"},
		"a password from nowhere": {map[string]string{"SLUICE_REDIS_URL": "redis://a:1",
			"SLUICE_REDIS_AUTH": "password"}, "SLUICE_REDIS_SECRET_ARN is not set"},
		"IAM for nobody": {map[string]string{"SLUICE_REDIS_URL": "redis://a:1", "SLUICE_REDIS_AUTH": "iam",
			"SLUICE_REDIS_IAM_RESOURCE": "c"}, "needs the cache's user and name"},
		"IAM for nothing": {map[string]string{"SLUICE_REDIS_URL": "redis://a:1", "SLUICE_REDIS_AUTH": "iam",
			"SLUICE_REDIS_USER": "u"}, "needs the cache's user and name"},
		"IAM outside of AWS": {map[string]string{
			"SLUICE_REDIS_URL": "redis://a:1", "SLUICE_REDIS_AUTH": "iam", "SLUICE_REDIS_USER": "u",
			"SLUICE_REDIS_IAM_RESOURCE": "c", "AWS_ACCESS_KEY_ID": "",
		}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := elasticacheauth.FromEnv(lookup(c.vars))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := elasticacheauth.LockNodesFromEnv(lookup(map[string]string{"SLUICE_LOCK_NODES": "redis://a:1,redis://b:1",
		"SLUICE_LOCK_IAM_RESOURCES": "a"}))
	require.ErrorContains(t, err, "names 1 caches, and SLUICE_LOCK_NODES has 2")
}
