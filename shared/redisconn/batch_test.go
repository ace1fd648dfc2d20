package redisconn_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// numbered returns n calls, each with a different key.
func numbered(n int) []redisconn.Call {
	calls := make([]redisconn.Call, n)
	for i := range calls {
		calls[i] = redisconn.Call{Keys: []string{"{" + strconv.Itoa(i) + "}"}, Args: []any{i}}
	}
	return calls
}

func TestRunEach(t *testing.T) {
	t.Parallel()
	t.Run("returns the replies in order, each with its own error", func(t *testing.T) {
		t.Parallel()
		redistest.Each(t, func(t *testing.T, r *redistest.Redis) {
			c := open(t, redisconn.Config{URLs: redisconn.SplitList(r.URL), CallTimeout: 5 * time.Second})
			script := redis.NewScript(`
				if ARGV[1] == '3' then return redis.error_reply('ERR three') end
				if ARGV[1] == '4' then return false end
				return {KEYS[1], ARGV[1]}`)
			for range 2 { // in the first round the server does not have the script yet
				for i, reply := range c.RunEach(t.Context(), script, numbered(8)) {
					switch i {
					case 3:
						require.ErrorContains(t, reply.Err, "three")
					case 4:
						require.ErrorIs(t, reply.Err, redis.Nil)
					default:
						require.NoError(t, reply.Err)
						require.Equal(t, []any{"{" + strconv.Itoa(i) + "}", strconv.Itoa(i)}, reply.Value)
					}
				}
			}
			require.Empty(t, c.RunEach(t.Context(), script, nil))
			require.Equal(t, []any{"{0}", "0"}, c.RunEach(t.Context(), script, numbered(1))[0].Value)
			require.False(t, c.BreakerOpen())
		})
	})

	t.Run("unavailable store: fails every call", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		c := open(t, redisconn.Config{URLs: []string{r.URL}})
		require.NoError(t, promptly(t, c))
		require.NoError(t, r.Server.Pause())
		for range 4 {
			started := time.Now()
			for _, reply := range c.RunEach(t.Context(), write(), numbered(3)) {
				require.Equal(t, fault.StoreUnavailable, fault.CodeOf(reply.Err), "%v", reply.Err)
			}
			require.Less(t, time.Since(started), 500*time.Millisecond)
		}
		require.True(t, c.BreakerOpen())
		require.NoError(t, r.Server.Resume())
	})
}
