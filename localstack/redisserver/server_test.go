package redisserver_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redisserver"
)

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func start(t *testing.T, options redisserver.Options) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestServer(t *testing.T) {
	t.Parallel()
	t.Run("durable: keeps its data when it is killed", func(t *testing.T) {
		t.Parallel()
		s := start(t, redisserver.Options{Durable: true})
		require.NoError(t, dial(t, s.Addr()).Set(t.Context(), "k", "v", 0).Err())
		require.NoError(t, s.Kill())
		require.Error(t, dial(t, s.Addr()).Ping(t.Context()).Err())
		require.NoError(t, s.Restart(t.Context()))
		require.Equal(t, "v", dial(t, s.Addr()).Get(t.Context(), "k").Val())
	})

	t.Run("paused: does not answer until it is resumed", func(t *testing.T) {
		t.Parallel()
		s := start(t, redisserver.Options{})
		require.NoError(t, s.Pause())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var timeout net.Error
		require.ErrorAs(t, dial(t, s.Addr()).Ping(ctx).Err(), &timeout)
		require.True(t, timeout.Timeout())
		require.NoError(t, s.Resume())
		require.NoError(t, dial(t, s.Addr()).Ping(t.Context()).Err())
	})

	t.Run("replica: follows the primary and can be promoted", func(t *testing.T) {
		t.Parallel()
		primary := start(t, redisserver.Options{})
		replica := start(t, redisserver.Options{ReplicaOf: primary.Addr()})
		c := dial(t, replica.Addr())
		require.NoError(t, dial(t, primary.Addr()).Set(t.Context(), "k", "v", 0).Err())
		require.Eventually(t, func() bool {
			return c.Get(t.Context(), "k").Val() == "v"
		}, 15*time.Second, 10*time.Millisecond)
		require.ErrorContains(t, c.Set(t.Context(), "k", "w", 0).Err(), "READONLY")
		require.NoError(t, c.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
		require.NoError(t, c.Set(t.Context(), "k", "w", 0).Err())
	})
}

func TestStartCluster(t *testing.T) {
	t.Parallel()
	cluster, err := redisserver.StartCluster(t.Context(), 3, redisserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, c.Set(t.Context(), key, key, 0).Err())
		require.Equal(t, key, c.Get(t.Context(), key).Val())
	}
}

func TestStartRunsTheSelectedProgram(t *testing.T) {
	selected := os.Getenv("REDIS_SERVER") //nolint:forbidigo // the variable under test
	path, err := exec.LookPath(cmp.Or(selected, "redis-server"))
	require.NoError(t, err)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDIS_SERVER", path)
	s, err := redisserver.Start(t.Context(), redisserver.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	t.Setenv("REDIS_SERVER", "no-such-server")
	_, err = redisserver.Start(t.Context(), redisserver.Options{})
	require.ErrorContains(t, err, "error finding the program that REDIS_SERVER selects")
}

func TestStart(t *testing.T) {
	t.Run("no redis-server: the error contains the command that installs it", func(t *testing.T) {
		t.Setenv("REDIS_SERVER", "")
		t.Setenv("PATH", t.TempDir())
		_, err := redisserver.Start(t.Context(), redisserver.Options{})
		require.ErrorIs(t, err, redisserver.ErrMissing)
		require.ErrorContains(t, err, "apt-get install -y redis-server")
	})

	t.Run("failed start: returns the output of the server", func(t *testing.T) {
		t.Parallel()
		_, err := redisserver.Start(t.Context(), redisserver.Options{Args: []string{"--no-such-option", "1"}})
		require.ErrorContains(t, err, "no-such-option")
	})
}

func TestMini(t *testing.T) {
	t.Parallel()
	m, err := redisserver.StartMini()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	c := dial(t, m.Addr())
	require.NoError(t, c.Set(t.Context(), "k", "v", 50*time.Millisecond).Err())
	require.Eventually(t, func() bool {
		return c.Exists(t.Context(), "k").Val() == 0
	}, 5*time.Second, 5*time.Millisecond)
}
