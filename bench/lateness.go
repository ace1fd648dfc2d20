package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hibiken/asynq"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/localstack/localaws"
)

func lateness(ctx context.Context, s *suite) error {
	local, err := localaws.Start("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("error starting SQS: %w", err)
	}
	defer func() { _ = local.Close() }()
	client := sqs.NewFromConfig(local.Config())
	var ours, bare []float64
	for round := range 3 {
		late, err := sluiceLateness(ctx, client, fmt.Sprintf("lateness-%d", round), s.size(5_000, 1_000))
		if err != nil {
			return err
		}
		floor, err := bareLateness(ctx, client, fmt.Sprintf("lateness-bare-%d", round), s.size(5_000, 1_000))
		if err != nil {
			return err
		}
		ours, bare = append(ours, late...), append(bare, floor...)
	}
	theirs, err := asynqLateness(ctx, s)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name     string
		quantile float64
		bound    float64
	}{{"p50", 0.5, 5}, {"p99", 0.99, 25}} {
		value, floor := measure.Quantile(ours, q.quantile), measure.Quantile(bare, q.quantile)
		work := "lateness at 1000 jobs/s, " + q.name
		s.add(report.Row{
			ID: "P10", Work: work, Against: "asynq", Ours: ms(value), Theirs: ms(measure.Quantile(theirs, q.quantile)),
			Value: value, Unit: "ms", AtMost: q.bound,
			Note: s.note("Sluice: the time from the due time until SQS accepts the job; an early job fails the run. asynq, with its default poll interval of 5 s: the time from the due time until its handler starts."),
		}, fmt.Sprintf("P10: a bare timer that sends the same messages to the same local SQS, without Redis, has a %s of %s; it takes turns with Sluice.", q.name, ms(floor)))
		s.add(report.Row{
			ID: "P10", Work: work, Against: "bare timer", Ours: ms(value), Theirs: ms(floor), Value: value / floor,
			Note: s.note("A timer and SendMessageBatch, without Redis: the lateness that the local SQS and this machine cause alone. The row has no target."),
		}, "")
	}
	earliest := slices.Min(ours)
	if earliest < 0 {
		return fmt.Errorf("a job was %.2f ms early", -earliest)
	}
	return s.draw("lateness.svg", "Lateness at 1000 jobs a second", func(path, title string) error {
		return report.Distribution(path, title, []string{"sluice", "bare timer", "asynq"},
			map[string][]float64{"sluice": ours, "bare timer": bare, "asynq": theirs})
	})
}

// evenly returns the due time of job n, which is n milliseconds after the due time of job 0. The
// argument from is the due time of job 0.
func evenly(from time.Time, n int) time.Time { return from.Add(time.Duration(n) * time.Millisecond) }

func sluiceLateness(ctx context.Context, client *sqs.Client, name string, count int) ([]float64, error) {
	db, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer db.close()
	url, remove, err := createQueue(ctx, client, name)
	if err != nil {
		return nil, err
	}
	defer remove()
	q, err := openQueues(db)
	if err != nil {
		return nil, err
	}
	first := time.Now().Add(time.Second).Truncate(time.Millisecond)
	for n := 0; n < count; n += 100 {
		batch := jobs(n, 100, 0)
		for i := range batch {
			batch[i].RunAt = evenly(first, n+i)
		}
		if err := push(ctx, q, batch); err != nil {
			return nil, err
		}
	}
	if time.Now().After(first) {
		return nil, fmt.Errorf("this machine is too slow: the first job was due before all jobs were enqueued")
	}
	a, wait := runDispatcher(ctx, q, client, url, count)
	if err := wait(); err != nil {
		return nil, err
	}
	return a.late, nil
}

// bareLateness sends the same messages without Redis. A timer waits until the next message is due,
// and sends all messages that are then due, in batches of up to ten. The result is the lateness of
// each message in ms.
func bareLateness(ctx context.Context, client *sqs.Client, name string, count int) ([]float64, error) {
	url, remove, err := createQueue(ctx, client, name)
	if err != nil {
		return nil, err
	}
	defer remove()
	var (
		mu     sync.Mutex
		late   []float64
		failed error
		wait   sync.WaitGroup
		slots  = make(chan struct{}, batches)
		first  = time.Now().Add(time.Second).Truncate(time.Millisecond)
	)
	for n := 0; n < count; {
		<-time.After(time.Until(evenly(first, n)))
		from, size := n, 1
		for size < 10 && n+size < count && !evenly(first, n+size).After(time.Now()) {
			size++
		}
		n += size
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			_, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(url),
				Entries: entries(from)[:size]})
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = fmt.Errorf("error sending: %w", err)
			}
			for i := range size {
				late = append(late, now.Sub(evenly(first, from+i)).Seconds()*1000)
			}
		})
	}
	wait.Wait()
	return late, failed
}

func asynqLateness(ctx context.Context, s *suite) ([]float64, error) {
	db, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer db.close()
	opt := asynq.RedisClientOpt{Addr: db.server.Addr()}
	peer := asynq.NewClient(opt)
	defer func() { _ = peer.Close() }()
	count := s.size(15_000, 2_000)
	first := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
	var (
		mu   sync.Mutex
		late []float64
		done = make(chan struct{})
	)
	server := asynq.NewServer(opt, asynq.Config{Concurrency: 10, LogLevel: asynq.FatalLevel})
	handle := func(_ context.Context, t *asynq.Task) error {
		n, err := strconv.Atoi(string(t.Payload()))
		if err != nil {
			return fmt.Errorf("error reading a task: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if late = append(late, time.Since(evenly(first, n)).Seconds()*1000); len(late) == count {
			close(done)
		}
		return nil
	}
	if err := server.Start(asynq.HandlerFunc(handle)); err != nil {
		return nil, fmt.Errorf("error starting asynq: %w", err)
	}
	defer server.Shutdown()
	for n := range count {
		if _, err := peer.EnqueueContext(ctx, asynq.NewTask("bench", []byte(strconv.Itoa(n))),
			asynq.ProcessAt(evenly(first, n))); err != nil {
			return nil, fmt.Errorf("error enqueuing with asynq: %w", err)
		}
	}
	select {
	case <-done:
		return late, nil
	case <-time.After(2 * time.Minute):
		return nil, fmt.Errorf("asynq handled only %d of %d tasks", len(late), count)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
