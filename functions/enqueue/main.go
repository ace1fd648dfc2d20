// The function enqueue answers /v1/queues: it takes in jobs, and shows and settles them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/shared/awsenv"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/redisconn/elasticacheauth"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// redisTimeout leaves room for the outbox: with it, an enqueue is answered within 800 ms when Redis
// hangs.
const redisTimeout = 300 * time.Millisecond

func main() {
	redisconn.SilenceDriver()
	if err := run(context.Background(), os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "enqueue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	redisCfg, err := elasticacheauth.FromEnv(getenv)
	if err != nil {
		return err
	}
	redisCfg.CallTimeout = redisTimeout
	conn, err := redisconn.Open(redisCfg)
	if err != nil {
		return err
	}
	queueCfg, err := delayqueue.ConfigFromEnv(getenv)
	if err != nil {
		return err
	}
	queues, err := delayqueue.New(conn, queueCfg)
	if err != nil {
		return err
	}
	urls, err := delayqueue.QueueURLs(getenv("SLUICE_QUEUES"))
	if err != nil {
		return err
	}
	table := getenv("SLUICE_OUTBOX_TABLE")
	if table == "" {
		return errors.New("SLUICE_OUTBOX_TABLE is not set: give the name of the DynamoDB table of the outbox")
	}
	aws, err := awsenv.Config(getenv)
	if err != nil {
		return err
	}
	log, metrics := telemetry.FromEnv(getenv, out, "enqueue")
	a := &api{queues: queues, outbox: outbox.New(dynamodb.NewFromConfig(aws), table), urls: urls, log: log,
		metrics: metrics}
	lambda.StartWithOptions(httpapi.Lambda(a.routes()), lambda.WithContext(ctx))
	return nil
}
