package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a script that a [Conn] runs, such as a *redis.Script. If it has a method Locate(error)
// error, a [Conn] passes the errors of its runs through that method, which adds the position in the
// source.
type Script interface {
	// Run calls EvalSha, and then Eval if the server does not have the script yet.
	Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
	// Eval runs the script by its source.
	Eval(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
	// EvalSha runs the script by its hash.
	EvalSha(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
}

// locate adds the position in the script's source to an error, if the script supports it.
func locate(script Script, err error) error {
	if located, ok := script.(interface{ Locate(err error) error }); ok {
		return located.Locate(err)
	}
	return err
}
