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

// refusal is an error reply of a server.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func TestErrorsOfTheDriverAreToldApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err         error
		unavailable bool
	}{
		"a refused connection": {&net.OpError{Op: "dial", Err: errors.New("connection refused")},
			true},
		"a connection that ended":                {io.EOF, true},
		"a call that took too long":              {fmt.Errorf("call: %w", context.DeadlineExceeded), true},
		"a pool without a free connection":       {redis.ErrPoolTimeout, true},
		"the driver's own words":                 {errors.New("redis: cluster has no nodes"), true},
		"a replica":                              {refusal("READONLY You can't write against a read only replica."), true},
		"a replica, from inside a script on 6.2": {refusal("ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write"), true},
		"a replica, from inside a script on 7":   {refusal("READONLY You can't write against a read only replica. script: f1, on @user_script:1."), true},
		"a server that loads its data": {refusal("LOADING Redis is loading the dataset in memory"),
			true},
		"a full memory":          {refusal("OOM command not allowed when used memory > 'maxmemory'."), true},
		"a cluster that is down": {refusal("CLUSTERDOWN Hash slot not served"), true},
		"a slot that moves":      {refusal("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		"a server whose disk fails": {refusal("MISCONF Redis is configured to save RDB snapshots"),
			true},
		"too many connections":                        {refusal("ERR max number of clients reached"), true},
		"a wrong password":                            {refusal("WRONGPASS invalid username-password pair or user is disabled."), true},
		"a script with an error":                      {refusal("ERR Error compiling script (new function)"), false},
		"keys of several slots":                       {refusal("CROSSSLOT Keys in request don't hash to the same slot"), false},
		"a wrong type":                                {refusal("WRONGTYPE Operation against a key holding the wrong kind of value"), false},
		"a caller's text that looks like a refusal":   {refusal("ERR unknown command 'READONLY'"), false},
		"a caller's text that looks like a refusal 2": {refusal("ERR value is not READONLY enough"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.unavailable, unavailable(tc.err))
		})
	}
}
