// The Lambda function "enqueue" serves /v1/queues: it accepts, shows and acknowledges jobs.
package main

import (
	"context"
	"os"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/startup"
)

// redisTimeout is the timeout of a call to Redis. It leaves time to use the outbox instead: while
// Redis hangs, an enqueue is answered within 800 ms.
const redisTimeout = 300 * time.Millisecond

func main() { os.Exit(startup.Run("enqueue", build, os.Getenv, os.Stdout, os.Stderr)) }

func build(_ context.Context, env *startup.Env) (any, error) {
	conn, cfg, urls := env.Redis(redisconn.Config{CallTimeout: redisTimeout}), env.QueueConfig(), env.QueueURLs()
	dynamo, table := env.DynamoDB(), env.Table("SLUICE_OUTBOX_TABLE", "outbox")
	if err := env.Err(); err != nil {
		return nil, err
	}

	queues, err := delayqueue.New(conn, cfg)
	if err != nil {
		return nil, err
	}
	service := jobs.New(queues, outbox.New(dynamo, table), env.Log)
	a := &api{jobs: service, urls: urls, log: env.Log, metrics: env.Metrics}
	return httpapi.Lambda(a.routes()), nil
}
