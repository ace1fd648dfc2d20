package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// replyError is an error reply of a server.
type replyError string

func (r replyError) Error() string { return string(r) }
func (replyError) RedisError()     {}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err         error
		unavailable bool
	}{
		"a refused connection":             {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"a connection that was closed":     {io.EOF, true},
		"a call that timed out":            {fmt.Errorf("call: %w", context.DeadlineExceeded), true},
		"a pool without a free connection": {redis.ErrPoolTimeout, true},
		"an error of the driver":           {errors.New("redis: cluster has no nodes"), true},

		"a replica": {replyError("READONLY You can't write against a read only replica."), true},
		"a replica, in a script on Redis 6.2": {replyError("ERR Error running script (call to f_1): @user_script:1: " +
			"-READONLY You can't write"), true},
		"a replica, in a script on Redis 7": {replyError("READONLY You can't write against a read only replica. " +
			"script: f1, on @user_script:1."), true},
		"a server that loads its data":   {replyError("LOADING Redis is loading the dataset in memory"), true},
		"a server out of memory":         {replyError("OOM command not allowed when used memory > 'maxmemory'."), true},
		"a cluster with uncovered slots": {replyError("CLUSTERDOWN Hash slot not served"), true},
		"a slot that is being moved":     {replyError("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		"a server whose disk fails":      {replyError("MISCONF Redis is configured to save RDB snapshots"), true},
		"too many connections":           {replyError("ERR max number of clients reached"), true},
		"a wrong password": {replyError("WRONGPASS invalid username-password pair or user is disabled."),
			true},

		"a script that does not compile": {replyError("ERR Error compiling script (new function)"), false},
		"keys of several slots":          {replyError("CROSSSLOT Keys in request don't hash to the same slot"), false},
		"a wrong type": {replyError("WRONGTYPE Operation against a key holding the wrong kind of value"),
			false},
		"a command named like a code":  {replyError("ERR unknown command 'READONLY'"), false},
		"a value that contains a code": {replyError("ERR value is not READONLY enough"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.unavailable, unavailable(tc.err))
		})
	}
}
