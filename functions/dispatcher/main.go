// The function dispatcher moves due jobs to SQS. EventBridge Scheduler invokes it every minute.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/shared/awsenv"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/redisconn/elasticacheauth"
	"github.com/sluicehq/sluice/shared/telemetry"
)

const (
	// stopMargin before the function's deadline claiming ends, and what is in flight is finished.
	stopMargin = 6 * time.Second
	// finishMargin is kept for the answer.
	finishMargin = 500 * time.Millisecond
	concurrency  = 32
	redisTimeout = 2 * time.Second
)

func main() {
	redisconn.SilenceDriver()
	if err := run(context.Background(), os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dispatcher:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	log, metrics := telemetry.FromEnv(getenv, out, "dispatcher")
	d, err := build(getenv, log, metrics)
	if err != nil {
		return err
	}
	// SIGTERM, where a runtime sends it: claim no more, finish what is in flight, and end.
	stopping, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	h := &handler{dispatcher: d, stopping: stopping}
	go lambda.StartWithOptions(h.handle, lambda.WithContext(ctx))
	<-stopping.Done()
	h.runs.Wait()
	return nil
}

func build(getenv func(string) string, log *slog.Logger, metrics *telemetry.Metrics) (*dispatch.Dispatcher, error) {
	redisCfg, err := elasticacheauth.FromEnv(getenv)
	if err != nil {
		return nil, err
	}
	redisCfg.CallTimeout, redisCfg.PoolSize = redisTimeout, 64
	conn, err := redisconn.Open(redisCfg)
	if err != nil {
		return nil, err
	}
	queueCfg, err := delayqueue.ConfigFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	queues, err := delayqueue.New(conn, queueCfg)
	if err != nil {
		return nil, err
	}
	urls, err := delayqueue.QueueURLs(getenv("SLUICE_QUEUES"))
	if err != nil {
		return nil, err
	}
	table := getenv("SLUICE_OUTBOX_TABLE")
	if table == "" {
		return nil, errors.New("SLUICE_OUTBOX_TABLE is not set: give the name of the DynamoDB table of the outbox")
	}
	awsCfg, err := awsenv.Config(getenv)
	if err != nil {
		return nil, err
	}
	// One try for a batch: what is not known to be accepted is returned, and sent again under the
	// same attempt.
	client := sqs.NewFromConfig(awsCfg, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	box := outbox.New(dynamodb.NewFromConfig(awsCfg), table)
	return dispatch.New(dispatch.Config{Queues: urls}, queues, box, sqssender.New(timed{client}, concurrency), log,
		metrics), nil
}

// timed bounds each batch, so that a hung SQS call does not outlast the lease.
type timed struct{ client *sqs.Client }

const batchTimeout = 10 * time.Second

func (t timed) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput,
	opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	return t.client.SendMessageBatch(ctx, in, opts...)
}

type handler struct {
	dispatcher *dispatch.Dispatcher
	stopping   context.Context
	runs       sync.WaitGroup
}

// handle takes any event: what an invocation says does not matter, only that it came.
func (h *handler) handle(ctx context.Context, _ json.RawMessage) (dispatch.Summary, error) {
	h.runs.Add(1)
	defer h.runs.Done()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour)
	}
	work, cancelWork := context.WithDeadline(ctx, deadline.Add(-finishMargin))
	defer cancelWork()
	claiming, cancelClaiming := context.WithDeadline(work, deadline.Add(-stopMargin))
	defer cancelClaiming()
	defer context.AfterFunc(h.stopping, cancelClaiming)() //nolint:contextcheck // SIGTERM ends every invocation
	return h.dispatcher.Run(work, claiming), nil          //nolint:contextcheck // both are the invocation's
}

var _ sqssender.API = timed{}
