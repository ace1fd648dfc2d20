package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Call holds the keys and arguments of one run of a script.
type Call struct {
	Keys []string
	Args []any
}

// Reply is the result of a [Call].
type Reply struct {
	Value any
	Err   error
}

// RunEach runs a script once per call, in one round trip to each node, and returns the replies in
// the order of the calls. Each call succeeds or fails independently, with the deadline and the
// errors of [Conn.Run].
func (c *Conn) RunEach(ctx context.Context, script Script, calls []Call) []Reply {
	replies := make([]Reply, len(calls))
	if len(calls) == 1 {
		replies[0].Value, replies[0].Err = c.Run(ctx, script, calls[0].Keys, calls[0].Args...)
		return replies
	}
	if err := c.breaker.admit(ctx); err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	pipe := c.client.Pipeline()
	sent := make([]*redis.Cmd, len(calls))
	for i, call := range calls {
		sent[i] = script.EvalSha(callCtx, pipe, call.Keys, call.Args...)
	}
	_, _ = pipe.Exec(callCtx) // each command has its own error

	for i, call := range calls {
		if redis.HasErrorPrefix(sent[i].Err(), "NOSCRIPT") {
			sent[i] = script.Eval(callCtx, c.client, call.Keys, call.Args...)
		}
		value, err := sent[i].Result()
		err = c.Classify(ctx, locate(script, err))
		c.breaker.record(ctx, err)
		replies[i] = Reply{Value: value, Err: err}
	}
	return replies
}
