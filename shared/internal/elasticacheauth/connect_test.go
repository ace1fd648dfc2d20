package elasticacheauth_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// guarded is a Redis that is configured like ElastiCache: it accepts only TLS connections that
// authenticate.
type guarded struct {
	url   string
	trust *tls.Config
	admin *redis.Client
}

func start(t *testing.T, addresses ...string) *guarded {
	t.Helper()
	files, trust := redistest.Certificate(t, addresses...)
	server, err := redisserver.Start(t.Context(),
		redisserver.Options{TLS: files, Args: []string{"--requirepass", "root"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	lax := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // only the test uses this connection
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "root", TLSConfig: lax, Protocol: 2})
	t.Cleanup(func() { _ = admin.Close() })
	return &guarded{url: server.URL(), trust: trust, admin: admin}
}

// setPassword gives the user this password and removes every other password.
func (g *guarded) setPassword(ctx context.Context, user, password string) error {
	return g.admin.Do(ctx, "ACL", "SETUSER", user, "on", "resetpass", ">"+password, "~{*", "+@all", "-@admin").Err()
}

// disconnect closes every connection of the user.
func (g *guarded) disconnect(t *testing.T, user string) {
	t.Helper()
	require.NoError(t, g.admin.Do(t.Context(), "CLIENT", "KILL", "USER", user).Err())
}

func (g *guarded) open(t *testing.T, cfg redisconn.Config) *redisconn.Conn {
	t.Helper()
	cfg.URLs, cfg.TLS = []string{g.url}, g.trust
	// Long timeouts, because the machine may be busy.
	cfg.CallTimeout, cfg.DialTimeout = 2*time.Second, 2*time.Second
	c, err := redisconn.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// whoami returns the ACL user and the ID that Redis reports for a connection.
func whoami(ctx context.Context, c *redisconn.Conn) (user, id string, err error) {
	err = c.Do(ctx, func(ctx context.Context) error {
		answers, err := c.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Do(ctx, "ACL", "WHOAMI")
			p.ClientID(ctx)
			return nil
		})
		if err == nil {
			user, id = fmt.Sprint(answers[0].(*redis.Cmd).Val()), fmt.Sprint(answers[1].(*redis.IntCmd).Val())
		}
		return err
	})
	return user, id, err
}

func TestIAMConnection(t *testing.T) {
	t.Parallel()
	t.Run("each TLS connection authenticates with its own token", func(t *testing.T) {
		t.Parallel()
		g := start(t, "127.0.0.1")
		var given atomic.Int32
		// Redis cannot verify IAM tokens, so each token becomes the user's password.
		verified := func(ctx context.Context) (string, string, error) {
			user, token, err := signer().Provide(ctx)
			if err != nil {
				return "", "", err
			}
			token += fmt.Sprint("#", given.Add(1)) // tokens that are signed in the same second are equal
			return user, token, g.setPassword(ctx, user, token)
		}
		c := g.open(t, redisconn.Config{Credentials: verified})

		user, _, err := whoami(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, "sluice-functions", user)
		require.EqualValues(t, 1, given.Load(), "one connection uses one token")

		require.NoError(t, g.setPassword(t.Context(), "sluice-functions", "the first token is no longer valid"))
		user, _, err = whoami(t.Context(), c)
		require.NoError(t, err, "a connection outlives its token")
		require.Equal(t, "sluice-functions", user)

		g.disconnect(t, "sluice-functions")
		require.Eventually(t, func() bool {
			_, _, err := whoami(t.Context(), c)
			return err == nil
		}, 10*time.Second, 10*time.Millisecond,
			"a new connection must authenticate with a new token")
		require.GreaterOrEqual(t, given.Load(), int32(2))
	})

	t.Run("cluster: each node gets its own credentials", func(t *testing.T) {
		t.Parallel()
		urls, trust := cluster(t)
		var given atomic.Int32
		c, err := redisconn.Open(redisconn.Config{
			URLs: urls[:1], Cluster: true, TLS: trust, CallTimeout: 5 * time.Second, DialTimeout: 5 * time.Second,
			Credentials: func(context.Context) (string, string, error) {
				given.Add(1)
				return "app", "secret", nil
			},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		script := redis.NewScript(`return redis.call('SET', KEYS[1], 'x')`)
		for _, key := range []string{"{a}", "{b}", "{c}"} { // slots 15495, 3300 and 7365: one on each node
			require.Eventually(t, func() bool {
				_, err := c.Run(t.Context(), script, []string{key})
				return err == nil
			}, 20*time.Second, 50*time.Millisecond, "the node of %s is unreachable", key)
		}
		require.GreaterOrEqual(t, given.Load(), int32(3), "one connection to each of three nodes")
	})

	t.Run("connection older than MaxConnAge: is replaced", func(t *testing.T) {
		t.Parallel()
		g := start(t, "127.0.0.1")
		require.NoError(t, g.setPassword(t.Context(), "app", "secret"))
		secret := func(context.Context) (string, string, error) { return "app", "secret", nil }
		aging := g.open(t, redisconn.Config{Credentials: secret, MaxConnAge: 100 * time.Millisecond})
		lasting := g.open(t, redisconn.Config{Credentials: secret, MaxConnAge: time.Hour})
		_, young, err := whoami(t.Context(), aging)
		require.NoError(t, err)
		_, kept, err := whoami(t.Context(), lasting)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, id, err := whoami(t.Context(), aging)
			return err == nil && id != young
		}, 10*time.Second, 20*time.Millisecond, "a connection older than MaxConnAge is replaced")
		_, id, err := whoami(t.Context(), lasting)
		require.NoError(t, err)
		require.Equal(t, kept, id, "a connection younger than MaxConnAge is kept")
	})

	t.Run("refused credentials: the store is unavailable", func(t *testing.T) {
		t.Parallel()
		for name, credentials := range map[string]func(context.Context) (string, string, error){
			"a wrong password": func(context.Context) (string, string, error) { return "app", "wrong", nil },
			"an unknown user":  func(context.Context) (string, string, error) { return "stranger", "secret", nil },
			"no credentials":   nil,
			"an error instead of credentials": func(context.Context) (string, string, error) {
				return "", "", context.DeadlineExceeded
			},
			"a user without access to the key": func(context.Context) (string, string, error) {
				return "locked", "secret", nil
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := start(t, "127.0.0.1")
				require.NoError(t, g.setPassword(t.Context(), "app", "secret"))
				require.NoError(t, g.admin.Do(t.Context(), "ACL", "SETUSER", "locked", "on", ">secret", "~none",
					"+@all").Err())
				c := g.open(t, redisconn.Config{Credentials: credentials})
				_, err := c.Run(t.Context(), redis.NewScript(`return redis.call('SET', KEYS[1], 'x')`), []string{"{k}"})
				require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
			})
		}
	})

	t.Run("unverified certificate: sends no credentials", func(t *testing.T) {
		t.Parallel()
		elsewhere := start(t, "redis.example.internal")
		_, stranger := redistest.Certificate(t, "127.0.0.1")
		for name, trust := range map[string]*tls.Config{
			"a certificate for another name":          elsewhere.trust,
			"a certificate of an unknown authority":   stranger,
			"a private authority that is not trusted": nil,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := &guarded{url: elsewhere.url, trust: trust}
				provided := false
				c := g.open(t, redisconn.Config{Credentials: func(context.Context) (string, string, error) {
					provided = true
					return "default", "root", nil
				}})
				_, err := c.Run(t.Context(), redis.NewScript(`return 1`), []string{"{k}"})
				require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
				require.ErrorContains(t, err, "certificate")
				require.False(t, provided, "the password must not be sent to an unverified server")
			})
		}
	})
}

// cluster starts a cluster of three primaries that use TLS for clients and for the cluster bus.
// Each primary has the user "app".
func cluster(t *testing.T) (urls []string, trust *tls.Config) {
	t.Helper()
	files, trust := redistest.Certificate(t, "127.0.0.1")
	var first *redis.Client
	for i := range 3 {
		server, err := redisserver.Start(t.Context(),
			redisserver.Options{TLS: files, Cluster: true,
				Args: []string{"--tls-cluster", "yes", "--requirepass", "root"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = server.Close() })
		urls = append(urls, server.URL())
		admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "root", TLSConfig: trust, Protocol: 2})
		t.Cleanup(func() { _ = admin.Close() })
		require.NoError(t, (&guarded{admin: admin}).setPassword(t.Context(), "app", "secret"))
		require.NoError(t, admin.ClusterAddSlotsRange(t.Context(), i*16384/3, (i+1)*16384/3-1).Err())
		require.NoError(t, admin.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if first == nil {
			first = admin
			continue
		}
		host, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		require.NoError(t, first.ClusterMeet(t.Context(), host, port).Err())
	}
	return urls, trust
}
