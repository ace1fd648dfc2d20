// Package startup starts the functions: it reads the environment, opens the connections to Redis
// and AWS, makes the logger and the metrics writer, and runs the Lambda handler. No other package
// interprets the environment.
//
// A function's main.go looks like this:
//
//	func main() { os.Exit(startup.Run("limit", build, os.Getenv, os.Stdout, os.Stderr)) }
//
//	func build(ctx context.Context, env *startup.Env) (any, error) {
//		conn, table := env.Redis(redisconn.Config{}), env.Table("SLUICE_POLICY_TABLE", "policies")
//		if err := env.Err(); err != nil {
//			return nil, err
//		}
//		…
//	}
package startup

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice/shared/redisconn"
)

// Build makes the handler of a function, in a form that [lambda.Start] accepts. It must check
// [Env.Err] before it uses a result of env's methods.
type Build func(ctx context.Context, env *Env) (handler any, err error)

// Run runs a function and returns the exit status of its process. The log and the metrics go to
// out. If build fails, Run prints each problem to errOut and returns 1.
func Run(function string, build Build, getenv func(string) string, out, errOut io.Writer) int {
	redisconn.SilenceDriver()
	ctx := context.Background()
	env := NewEnv(function, getenv, out)

	handler, err := build(ctx, env)
	if err != nil {
		for _, problem := range problems(err) {
			_, _ = fmt.Fprintf(errOut, "%s: %s\n", function, problem)
		}
		return 1
	}
	if env.drain == nil {
		lambda.StartWithOptions(handler, lambda.WithContext(ctx))
		return 0
	}
	go lambda.StartWithOptions(handler, lambda.WithContext(ctx))
	<-env.terminating.Done()
	env.drain()
	return 0
}

// DrainOnSIGTERM keeps the process alive after a SIGTERM until drain returns. The returned context
// ends when the signal arrives. If DrainOnSIGTERM is not called, a SIGTERM ends the process
// immediately.
func (e *Env) DrainOnSIGTERM(ctx context.Context, drain func()) context.Context {
	e.drain = drain
	e.terminating, _ = signal.NotifyContext(ctx, syscall.SIGTERM) // never stopped: the process ends
	return e.terminating
}

// problems splits a joined error into its parts.
func problems(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only the outermost error
		return joined.Unwrap()
	}
	return []error{err}
}
