// The function lock answers /v1/locks and /v1/semaphores.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/shared/awsenv"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
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
	b, err := open(getenv)
	if err != nil {
		return err
	}
	log, metrics := telemetry.FromEnv(getenv, out, "lock")
	lambda.StartWithOptions(httpapi.Lambda(newAPI(b, log, metrics)), lambda.WithContext(ctx))
	return nil
}

// open makes the backends that the environment names.
func open(getenv func(string) string) (backends, error) {
	cfg, err := elasticacheauth.FromEnv(getenv)
	if err != nil {
		return backends{}, err
	}
	conn, err := redisconn.Open(cfg)
	if err != nil {
		return backends{}, err
	}
	b := backends{redis: lock.NewRedis(conn)}
	nodes, err := elasticacheauth.LockNodesFromEnv(getenv)
	if err != nil {
		return backends{}, err
	}
	if len(nodes) > 0 {
		if b.quorum, err = openQuorum(nodes); err != nil {
			return backends{}, err
		}
	}
	if table := getenv("SLUICE_LOCK_TABLE"); table != "" {
		aws, err := awsenv.Config(getenv)
		if err != nil {
			return backends{}, err
		}
		b.strong = dynamolock.New(dynamodb.NewFromConfig(aws), table)
	}
	return b, nil
}

func openQuorum(nodes []redisconn.Config) (*lock.Quorum, error) {
	conns := make([]*redisconn.Conn, len(nodes))
	for i, cfg := range nodes {
		cfg.CallTimeout = lock.NodeTimeout
		var err error
		if conns[i], err = redisconn.Open(cfg); err != nil {
			return nil, fmt.Errorf("lock node %d: %w", i+1, err)
		}
	}
	return lock.NewQuorum(conns)
}
