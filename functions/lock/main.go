// The function lock answers /v1/locks and /v1/semaphores.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/redisconn/elasticacheauth"
	"github.com/sluicehq/sluice/shared/telemetry"
)

func main() {
	redisconn.SilenceDriver()
	if err := run(context.Background(), os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lock:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, err := elasticacheauth.FromEnv(getenv)
	if err != nil {
		return err
	}
	conn, err := redisconn.Open(cfg)
	if err != nil {
		return err
	}
	log, metrics := telemetry.FromEnv(getenv, out, "lock")
	api := newAPI(backends{redis: lock.NewRedis(conn)}, log, metrics)
	lambda.StartWithOptions(httpapi.Lambda(api), lambda.WithContext(ctx))
	return nil
}
