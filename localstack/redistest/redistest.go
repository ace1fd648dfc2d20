// Package redistest starts a Redis for tests: a single server, a cluster of three masters, or
// miniredis.
//
// If redis-server is not installed, the tests are not skipped: they fail, and the error contains
// the command that installs it.
package redistest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/sluicehq/sluice/localstack/redisserver"
)

// Redis is a running deployment with a client.
type Redis struct {
	// Client has the configuration of the functions' client: it respects contexts and does not
	// retry.
	Client redis.UniversalClient
	// URL is a redis:// URL. For a cluster, it is a comma-separated list of the nodes' URLs.
	URL string
	// Cluster is true for a cluster.
	Cluster bool
	// Server is the process of a single server. It is nil for a cluster and for miniredis.
	Server *redisserver.Server
	// Nodes lists the processes of a cluster.
	Nodes []*redisserver.Server
	// Mini is true for miniredis.
	Mini bool
}

// Single starts a server with additional command-line arguments for a test.
func Single(t testing.TB, args ...string) *Redis {
	t.Helper()
	return Start(t, redisserver.Options{Args: args})
}

// Start starts a server with options for a test.
func Start(t testing.TB, options redisserver.Options) *Redis {
	t.Helper()
	s, err := redisserver.Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &Redis{Client: client(t, []string{s.Addr()}, false), URL: s.URL(), Server: s}
}

// Cluster starts a cluster of three masters for a test.
func Cluster(t testing.TB) *Redis {
	t.Helper()
	c, err := redisserver.StartCluster(context.Background(), 3, redisserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &Redis{Client: client(t, c.Addrs(), true), URL: c.URL(), Cluster: true, Nodes: c.Nodes}
}

// Mini starts a miniredis for a test.
func Mini(t testing.TB) *Redis {
	t.Helper()
	m, err := redisserver.StartMini()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return &Redis{Client: client(t, []string{m.Addr()}, false), URL: m.URL(), Mini: true}
}

// Each runs a test on a single server, on a cluster and on miniredis.
func Each(t *testing.T, test func(*testing.T, *Redis)) {
	t.Helper()
	t.Run("on one redis", func(t *testing.T) { test(t, Single(t)) })
	t.Run("on a redis cluster", func(t *testing.T) { test(t, Cluster(t)) })
	t.Run("on miniredis", func(t *testing.T) { test(t, Mini(t)) })
}

// Name returns a name that no other test uses: "lock-k3v9…".
func Name(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:12]) }

func client(t testing.TB, addrs []string, cluster bool) redis.UniversalClient {
	t.Helper()
	c := newClient(addrs, cluster)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newClient(addrs []string, cluster bool) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, IsClusterMode: cluster, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, PoolSize: 64,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
