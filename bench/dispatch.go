package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/localstack/localaws"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/dispatch"
	jobservice "github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// batches is the maximum number of concurrent SendMessageBatch calls of each contender.
const batches = 32

// accepted wraps a sender. It records the lateness of each job that SQS accepts. When SQS has
// accepted the wanted number of jobs, it closes the channel done.
type accepted struct {
	dispatch.Sender

	want int
	done chan struct{}
	mu   sync.Mutex
	late []float64 // ms after the due time
}

func (a *accepted) Send(ctx context.Context, queue, url string, claimed []delayqueue.Claimed) []sqssender.Result {
	results := a.Sender.Send(ctx, queue, url, claimed)
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, r := range results {
		if r.Outcome == sqssender.Accepted {
			a.late = append(a.late, now.Sub(claimed[i].RunAt).Seconds()*1000)
		}
	}
	if len(a.late) == a.want {
		close(a.done)
	}
	return results
}

// runDispatcher starts a dispatcher. The returned function waits until SQS has accepted the wanted
// number of jobs, for at most 2 min, and then stops the dispatcher.
func runDispatcher(ctx context.Context, q *delayqueue.Queues, client *sqs.Client, url string,
	want int) (*accepted, func() error) {
	a := &accepted{Sender: sqssender.New(client, batches), want: want, done: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	d := dispatch.New(dispatch.Config{Queues: map[string]string{queue: url}}, jobservice.New(q, nil, log), a, log,
		telemetry.Discard())
	claiming, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { d.Run(ctx, claiming); close(ended) }()
	return a, func() error {
		defer func() { stop(); <-ended }()
		select {
		case <-a.done:
			return nil
		case <-time.After(2 * time.Minute):
			return fmt.Errorf("only %d of %d jobs were sent", len(a.late), want)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// createQueue creates a queue. The returned function deletes the queue and its messages: the local
// SQS keeps messages in this process's memory, where they would slow the next measurement.
func createQueue(ctx context.Context, client *sqs.Client, name string) (url string, remove func(), err error) {
	out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name)})
	if err != nil {
		return "", nil, fmt.Errorf("error creating a queue: %w", err)
	}
	remove = func() {
		_, _ = client.DeleteQueue(context.WithoutCancel(ctx), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		debug.FreeOSMemory()
	}
	return aws.ToString(out.QueueUrl), remove, nil
}

func dispatchThroughput(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	local, err := localaws.Start("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("error starting SQS: %w", err)
	}
	defer func() { _ = local.Close() }()
	client := sqs.NewFromConfig(local.Config())
	count, samples, redisOwn := s.size(30_000, 6_000), make(measure.Samples), []float64(nil)
	for round := range s.size(5, 3) {
		ours, own, err := throughDispatcher(ctx, db, client, fmt.Sprintf("ours-%d", round), count)
		if err != nil {
			return err
		}
		redisOwn = append(redisOwn, own)
		theirs, err := bareLoop(ctx, client, fmt.Sprintf("bare-%d", round), count)
		if err != nil {
			return err
		}
		samples["sluice"], samples["bare SendMessageBatch"] = append(samples["sluice"], ours),
			append(samples["bare SendMessageBatch"], theirs)
	}
	spent := func(name string) float64 { return float64(runtime.NumCPU()) * 1e6 / samples.Median(name) }
	s.ratio("P9", "claim → SQS → acknowledge, one dispatcher", samples, "bare SendMessageBatch", 0.8,
		s.note("The bare loop sends the same messages to the same local SQS with the same concurrency, without Redis. The local SQS runs on the same processor."),
		fmt.Sprintf("P9: the bare loop spends %.0f µs of processor time on a job, client and local SQS together. Sluice spends %.0f µs, of which Redis' claim and acknowledgement "+
			"take %.0f µs. When SQS and Redis run on other machines, they do not compete for the dispatcher's processor.", spent("bare SendMessageBatch"),
			spent("sluice"), measure.Quantile(redisOwn, 0.5)))
	return nil
}

// throughDispatcher returns the dispatcher's rate in jobs per second, and the processor time that
// Redis spends per job, in microseconds. It enqueues the jobs before the measurement.
func throughDispatcher(ctx context.Context, db *store, client *sqs.Client, name string,
	count int) (rate, own float64, err error) {
	if err := db.flush(ctx); err != nil {
		return 0, 0, err
	}
	q, err := openQueues(db)
	if err != nil {
		return 0, 0, err
	}
	url, remove, err := createQueue(ctx, client, name)
	if err != nil {
		return 0, 0, err
	}
	defer remove()
	for n := 0; n < count; n += 100 {
		if err := push(ctx, q, jobs(n, 100, 0)); err != nil {
			return 0, 0, err
		}
	}
	own, err = redisMicros(ctx, db, count, func(ctx context.Context) error {
		started := time.Now()
		_, wait := runDispatcher(ctx, q, client, url, count)
		err := wait()
		rate = float64(count) / time.Since(started).Seconds()
		return err
	})
	return rate, own, err
}

func bareLoop(ctx context.Context, client *sqs.Client, name string, count int) (float64, error) {
	url, remove, err := createQueue(ctx, client, name)
	if err != nil {
		return 0, err
	}
	defer remove()
	var wait sync.WaitGroup
	slots, errs := make(chan struct{}, batches), make(chan error, count/10+1)
	started := time.Now()
	for n := 0; n < count; n += 10 {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			_, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(url),
				Entries: entries(n)})
			errs <- err
		})
	}
	wait.Wait()
	took := time.Since(started)
	close(errs)
	for err := range errs {
		if err != nil {
			return 0, fmt.Errorf("error sending: %w", err)
		}
	}
	return float64(count) / took.Seconds(), nil
}

func entries(first int) []types.SendMessageBatchRequestEntry {
	out := make([]types.SendMessageBatchRequestEntry, 10)
	text := func(v string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(v)}
	}
	for i := range out {
		id := fmt.Sprintf("job-%d", first+i)
		out[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(payload(first + i))),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"sluice-job-id": text(id), "sluice-queue": text(queue), "sluice-attempt": text("1"),
				"sluice-run-at": text("1796131103088"),
			},
		}
	}
	return out
}
