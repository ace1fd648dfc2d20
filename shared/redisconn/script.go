package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a script that a [Conn] runs, such as a *redis.Script. If it has a method
// Locate(error) error, that method wraps the errors of its runs with the place in the source.
type Script interface {
	// Run is EvalSha, and Eval if the server does not have the script yet.
	Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
	// Eval sends the script.
	Eval(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
	// EvalSha sends the hash of the script.
	EvalSha(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd
}

// locate adds the place in the source of a script to an error of its run.
func locate(script Script, err error) error {
	if located, ok := script.(interface{ Locate(err error) error }); ok {
		return located.Locate(err)
	}
	return err
}
