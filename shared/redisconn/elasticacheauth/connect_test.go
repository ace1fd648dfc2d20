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

// guarded is a Redis as ElastiCache is: TLS only, and nobody without a user. Its administrator
// connects with the certificate's configuration.
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
	lax := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the administrator's connection is not what is tested
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "root", TLSConfig: lax, Protocol: 2})
	t.Cleanup(func() { _ = admin.Close() })
	return &guarded{url: server.URL(), trust: trust, admin: admin}
}

// let makes password the only one of the user.
func (g *guarded) let(ctx context.Context, user, password string) error {
	return g.admin.Do(ctx, "ACL", "SETUSER", user, "on", "resetpass", ">"+password, "~{*", "+@all", "-@admin").Err()
}

// cut ends every connection of the user.
func (g *guarded) cut(t *testing.T, user string) {
	t.Helper()
	require.NoError(t, g.admin.Do(t.Context(), "CLIENT", "KILL", "USER", user).Err())
}

func (g *guarded) open(t *testing.T, cfg redisconn.Config) *redisconn.Conn {
	t.Helper()
	cfg.URLs, cfg.TLS = []string{g.url}, g.trust
	// what is tested is who is let in, on a machine that may be busy
	cfg.CallTimeout, cfg.DialTimeout = 2*time.Second, 2*time.Second
	c, err := redisconn.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// whoami is the ACL user of a connection, and its id at the server.
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

func TestATokenOpensATLSConnectionAndTheNextConnectionHasTheNextToken(t *testing.T) {
	t.Parallel()
	g := start(t, "127.0.0.1")
	var given atomic.Int32
	// What ElastiCache does with a token it verifies; here the server is told of each one, and
	// knows no other.
	verified := func(ctx context.Context) (string, string, error) {
		user, token, err := signer().Provide(ctx)
		if err != nil {
			return "", "", err
		}
		token += fmt.Sprint("#", given.Add(1)) // two tokens of one second are the same
		return user, token, g.let(ctx, user, token)
	}
	c := g.open(t, redisconn.Config{Credentials: verified})

	user, _, err := whoami(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "sluice-functions", user)
	require.EqualValues(t, 1, given.Load(), "one connection, one token")

	require.NoError(t, g.let(t.Context(), "sluice-functions", "the first token has ended"))
	user, _, err = whoami(t.Context(), c)
	require.NoError(t, err, "a connection outlives its token")
	require.Equal(t, "sluice-functions", user)

	g.cut(t, "sluice-functions")
	require.Eventually(t, func() bool {
		_, _, err := whoami(t.Context(), c)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond,
		"the connection that takes the place of a cut one must bring a token of its own")
	require.GreaterOrEqual(t, given.Load(), int32(2))
}

// cluster starts three masters that talk TLS, also to each other, with the user app on each.
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
		require.NoError(t, (&guarded{admin: admin}).let(t.Context(), "app", "secret"))
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

func TestEveryNodeOfAClusterIsReachedByTLSWithCredentialsOfItsOwn(t *testing.T) {
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
		}, 20*time.Second, 50*time.Millisecond, "the node of %s is not reached", key)
	}
	require.GreaterOrEqual(t, given.Load(), int32(3), "a connection to each of three nodes has asked for credentials")
}

func TestAConnectionIsReplacedBeforeElastiCacheEndsIt(t *testing.T) {
	t.Parallel()
	g := start(t, "127.0.0.1")
	require.NoError(t, g.let(t.Context(), "app", "secret"))
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
	}, 10*time.Second, 20*time.Millisecond, "the connection is older than it may be")
	_, id, err := whoami(t.Context(), lasting)
	require.NoError(t, err)
	require.Equal(t, kept, id, "a connection that is young enough is kept")
}

func TestWhoeverIsNotLetInFindsTheStoreUnavailable(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]func(context.Context) (string, string, error){
		"with a wrong password": func(context.Context) (string, string, error) { return "app", "wrong", nil },
		"with an unknown user":  func(context.Context) (string, string, error) { return "stranger", "secret", nil },
		"without any":           nil,
		"with none to be had": func(context.Context) (string, string, error) {
			return "", "", context.DeadlineExceeded
		},
		"with another one's key": func(context.Context) (string, string, error) { return "locked", "secret", nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, "127.0.0.1")
			require.NoError(t, g.let(t.Context(), "app", "secret"))
			require.NoError(t, g.admin.Do(t.Context(), "ACL", "SETUSER", "locked", "on", ">secret", "~none",
				"+@all").Err())
			c := g.open(t, redisconn.Config{Credentials: credentials})
			_, err := c.Run(t.Context(), redis.NewScript(`return redis.call('SET', KEYS[1], 'x')`), []string{"{k}"})
			require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
		})
	}
}

func TestAServerThatCannotProveWhoItIsIsNotTalkedTo(t *testing.T) {
	t.Parallel()
	elsewhere := start(t, "redis.example.internal")
	_, stranger := redistest.Certificate(t, "127.0.0.1")
	for name, trust := range map[string]*tls.Config{
		"a certificate for another name":          elsewhere.trust,
		"a certificate of an unknown authority":   stranger,
		"the system's authorities, as by default": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &guarded{url: elsewhere.url, trust: trust}
			asked := false
			c := g.open(t, redisconn.Config{Credentials: func(context.Context) (string, string, error) {
				asked = true
				return "default", "root", nil
			}})
			_, err := c.Run(t.Context(), redis.NewScript(`return 1`), []string{"{k}"})
			require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "certificate")
			require.False(t, asked, "a password must not be sent to whoever answers")
		})
	}
}
