// The Lambda function "dispatcher" moves due jobs to SQS. EventBridge Scheduler invokes it every
// minute.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/startup"
)

const (
	redisTimeout = 2 * time.Second
	redisPool    = 64
	// concurrency is the maximum number of batches that are sent to SQS concurrently.
	concurrency = 32
	// batchTimeout is the timeout of one batch. It is shorter than the lease of the claimed jobs,
	// so that a hanging call to SQS ends before the lease does.
	batchTimeout = 10 * time.Second
)

func main() { os.Exit(startup.Run("dispatcher", build, os.Getenv, os.Stdout, os.Stderr)) }

func build(ctx context.Context, env *startup.Env) (any, error) {
	conn := env.Redis(redisconn.Config{CallTimeout: redisTimeout, PoolSize: redisPool})
	cfg, urls := env.QueueConfig(), env.QueueURLs()
	dynamo, table := env.DynamoDB(), env.Table("SLUICE_OUTBOX_TABLE", "outbox")
	if err := env.Err(); err != nil {
		return nil, err
	}

	queues, err := delayqueue.New(conn, cfg)
	if err != nil {
		return nil, err
	}
	// The client does not retry: the dispatcher requeues every job that SQS did not confirm and
	// sends it again with the same attempt number.
	client := sqs.NewFromConfig(env.AWS(), func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	sender := sqssender.New(bounded{client}, concurrency)
	box := outbox.New(dynamo, table)
	service := jobs.New(queues, box, env.Log)
	h := &handler{
		dispatcher: dispatch.New(dispatch.Config{Queues: urls}, service, sender, env.Log, env.Metrics),
	}
	h.terminating = env.DrainOnSIGTERM(ctx, h.runs.Wait)
	return h.handle, nil
}

// bounded is an SQS client that limits each batch to batchTimeout.
type bounded struct{ client *sqs.Client }

var _ sqssender.API = bounded{}

// SendMessageBatch implements [sqssender.API].
func (b bounded) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput,
	opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	return b.client.SendMessageBatch(ctx, in, opts...)
}
