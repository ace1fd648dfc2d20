package redisconn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

func open(t *testing.T, cfg redisconn.Config) *redisconn.Conn {
	t.Helper()
	c, err := redisconn.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write() *redis.Script { return redis.NewScript(`return redis.call('SET', KEYS[1], 'x')`) }

// promptly makes a call and requires that it takes less than 500 ms, the maximum of the lock API
// during an outage.
func promptly(t *testing.T, c *redisconn.Conn) error {
	t.Helper()
	started := time.Now()
	_, err := c.Run(t.Context(), write(), []string{"{k}"})
	require.Less(t, time.Since(started), 500*time.Millisecond)
	return err
}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("unavailable store: fails within 500 ms", func(t *testing.T) {
		t.Parallel()
		for name, breakIt := range map[string]func(*testing.T, *redistest.Redis){
			"a server that was killed": func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Kill()) },
			"a server that hangs":      func(t *testing.T, r *redistest.Redis) { require.NoError(t, r.Server.Pause()) },
			"a server over memory":     func(t *testing.T, r *redistest.Redis) { set(t, r, "maxmemory", "1") },
			"a server that became a replica": func(t *testing.T, r *redistest.Redis) {
				require.NoError(t, r.Client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			},
			"a server without enough replicas": func(t *testing.T, r *redistest.Redis) {
				set(t, r, "min-replicas-to-write", "1")
			},
			"a server that requires a password": func(t *testing.T, r *redistest.Redis) {
				set(t, r, "requirepass", "secret")
				require.NoError(t, r.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := redistest.Single(t)
				c := open(t, redisconn.Config{URLs: []string{r.URL}})
				require.NoError(t, promptly(t, c))
				breakIt(t, r)
				for range 4 { // the first three calls open the breaker
					err := promptly(t, c)
					require.Equal(t, fault.StoreUnavailable, fault.CodeOf(err), "%v", err)
				}
			})
		}
	})

	t.Run("unavailable store: fails immediately until Redis answers again", func(t *testing.T) {
		t.Parallel()
		for name, outage := range map[string]struct {
			stop, start func(*redistest.Redis) error
		}{
			"a server that was killed": {
				stop:  func(r *redistest.Redis) error { return r.Server.Kill() },
				start: func(r *redistest.Redis) error { return r.Server.Restart(context.Background()) },
			},
			"a server that hangs": {
				stop:  func(r *redistest.Redis) error { return r.Server.Pause() },
				start: func(r *redistest.Redis) error { return r.Server.Resume() },
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := redistest.Start(t, redisserver.Options{})
				c := open(t, redisconn.Config{URLs: []string{r.URL}})
				require.NoError(t, promptly(t, c))
				require.NoError(t, outage.stop(r))
				for range 3 {
					require.Error(t, promptly(t, c))
				}
				require.True(t, c.BreakerOpen())
				const calls = 1000
				started := time.Now()
				for range calls {
					require.Error(t, promptly(t, c))
				}
				require.Less(t, time.Since(started)/calls, 5*time.Millisecond)

				require.NoError(t, outage.start(r))
				restarted := time.Now()
				require.Eventually(t, func() bool { return promptly(t, c) == nil }, 10*time.Second, time.Millisecond)
				require.Less(t, time.Since(restarted), 3*time.Second)
				require.False(t, c.BreakerOpen())
			})
		}
	})

	t.Run("ended context: returns its error and leaves the breaker closed", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}, CallTimeout: 10 * time.Second})
		require.NoError(t, promptly(t, c))
		require.NoError(t, r.Server.Pause())
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := c.Run(ctx, write(), []string{"{k}"})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, fault.CodeOf(err))
		}
		require.False(t, c.BreakerOpen())
		require.NoError(t, r.Server.Resume())
	})

	t.Run("flushed scripts: sends the script again", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			c := open(t, redisconn.Config{URLs: redisconn.SplitList(r.URL)})
			for range 2 {
				reply, err := c.Run(t.Context(), redis.NewScript("return {KEYS[1], ARGV[1]}"), []string{"{k}"}, "v")
				require.NoError(t, err)
				require.Equal(t, []any{"{k}", "v"}, reply)
				require.NoError(t, r.Client.ScriptFlush(t.Context()).Err())
			}
		})
	})

	t.Run("defective script: returns an error without a code", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}})
		for _, source := range []string{
			"this is no Lua", "return redis.call('NOSUCHCOMMAND')", "return redis.call('INCR', KEYS[1])",
		} {
			require.NoError(t, promptly(t, c)) // {k} holds a string
			_, err := c.Run(t.Context(), redis.NewScript(source), []string{"{k}"})
			require.Error(t, err)
			require.Empty(t, fault.CodeOf(err), source)
		}
		require.False(t, c.BreakerOpen())
	})

	t.Run("node of a cluster without Cluster: names the setting", func(t *testing.T) {
		t.Parallel()
		r := redistest.Cluster(t)
		c := open(t, redisconn.Config{URLs: []string{r.Nodes[0].URL()}, CallTimeout: 5 * time.Second})
		_, err := c.Run(t.Context(), write(), []string{"{a}"}) // slot 15495, of the last node
		require.ErrorContains(t, err, "slot 15495 is served by "+r.Nodes[2].Addr()+
			", not by the configured node; set SLUICE_REDIS_CLUSTER=true")
		require.Empty(t, fault.CodeOf(err), "a wrong configuration is not an outage")
	})

	t.Run("nil reply: returns redis.Nil", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}})
		_, err := c.Run(t.Context(), redis.NewScript("return false"), []string{"{k}"})
		require.ErrorIs(t, err, redis.Nil)
		require.False(t, c.BreakerOpen())
	})

	t.Run("closed Conn: returns store_unavailable", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}})
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(promptly(t, c)))
		require.Error(t, errors.Unwrap(promptly(t, c)), "the error wraps the cause, for the log")
	})
}

func set(t *testing.T, r *redistest.Redis, name, value string) {
	t.Helper()
	require.NoError(t, r.Client.ConfigSet(t.Context(), name, value).Err())
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		urls []string
		want string
	}{
		"no URL":          {nil, "no address"},
		"a wrong scheme":  {[]string{"http://localhost"}, "redis URL is not valid: redis: invalid URL scheme: http"},
		"a malformed URL": {[]string{"redis://:pass\nword@localhost"}, "redis URL is not valid"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			t.Parallel()
			_, err := redisconn.Open(redisconn.Config{URLs: tc.urls})
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "word", "a password never reaches the log")
		})
	}
}

func TestSplitList(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"redis://a:1", "redis://b:2"}, redisconn.SplitList("redis://a:1, redis://b:2,"))
	require.Empty(t, redisconn.SplitList(" , "))
}
