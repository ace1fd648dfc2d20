package delayqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/fault"
)

// open returns queues with one shard on a new Redis.
func open() (queues *delayqueue.Queues, stop func()) {
	client, stop := redistest.ForExample() // replace with your redis.UniversalClient
	queues, err := delayqueue.FromClient(client, delayqueue.Config{Shards: 1})
	if err != nil {
		panic(err)
	}
	return queues, stop
}

// claim waits until jobs of "orders" are due, and claims them.
func claim(ctx context.Context, queues *delayqueue.Queues) []delayqueue.Claimed {
	for {
		claims, err := queues.Claim(ctx, "orders", 0, 10, 30*time.Second)
		if err != nil {
			panic(err)
		}
		if len(claims.Jobs) > 0 {
			return claims.Jobs
		}
		<-time.After(time.Millisecond)
	}
}

// A dispatcher claims a due job, delivers it, and calls Accept.
func Example() {
	queues, stop := open()
	defer stop()
	ctx := context.Background()

	job := delayqueue.Job{ID: "remind-7", Payload: []byte(`{"order":7}`), Delay: 5 * time.Millisecond}
	enqueued, err := queues.Push(ctx, "orders", job)
	if err != nil {
		panic(err)
	}
	fmt.Println(enqueued.ID, enqueued.State)

	claimed := claim(ctx, queues)
	for _, job := range claimed {
		fmt.Printf("attempt %d of %s: %s\n", job.Attempt, job.ID, job.Payload)
	}
	if _, err := queues.Accept(ctx, "orders", 0, claimed); err != nil {
		panic(err)
	}

	info, err := queues.Get(ctx, "orders", "remind-7")
	fmt.Println(info.State, err)

	// Output:
	// remind-7 scheduled
	// attempt 1 of remind-7: {"order":7}
	// dispatched <nil>
}

// A job with several attempts is delivered again after a negative acknowledgement.
func ExampleQueues_Nack() {
	queues, stop := open()
	defer stop()
	ctx := context.Background()
	job := delayqueue.Job{ID: "charge-7", Payload: []byte(`7`), MaxAttempts: 2}
	if _, err := queues.Push(ctx, "orders", job); err != nil {
		panic(err)
	}

	attempt := func() delayqueue.Claimed {
		claimed := claim(ctx, queues)
		if _, err := queues.Accept(ctx, "orders", 0, claimed); err != nil {
			panic(err)
		}
		return claimed[0]
	}

	first := attempt()
	failed, err := queues.Nack(ctx, "orders", first.ID, first.Attempt,
		delayqueue.NackOptions{Reason: "card declined", Delay: new(time.Millisecond)})
	fmt.Println("after attempt 1:", failed.State, err)

	second := attempt()
	succeeded, err := queues.Ack(ctx, "orders", second.ID, second.Attempt)
	fmt.Println("after attempt 2:", succeeded.State, err)

	_, err = queues.Ack(ctx, "orders", first.ID, first.Attempt)
	fmt.Println("attempt 1 again:", errors.Is(err, delayqueue.ErrConflict))

	// Output:
	// after attempt 1: scheduled <nil>
	// after attempt 2: succeeded <nil>
	// attempt 1 again: true
}

// An ID makes Push idempotent: a retry after a lost reply enqueues nothing.
func ExampleQueues_Push_idempotent() {
	queues, stop := open()
	defer stop()
	ctx := context.Background()

	for _, payload := range []string{`{"order":7}`, `{"order":7}`, `{"order":8}`} {
		job := delayqueue.Job{ID: "remind-7", Payload: []byte(payload), Delay: time.Hour}
		enqueued, err := queues.Push(ctx, "orders", job)
		if err != nil {
			panic(err)
		}
		fmt.Println("duplicate:", enqueued.Duplicate, "differs:", enqueued.Differs)
	}

	// Output:
	// duplicate: false differs: false
	// duplicate: true differs: false
	// duplicate: true differs: true
}

// A scheduled job that is canceled is never sent.
func ExampleQueues_Cancel() {
	queues, stop := open()
	defer stop()
	ctx := context.Background()
	job := delayqueue.Job{ID: "remind-7", Payload: []byte(`7`), Delay: time.Hour}
	if _, err := queues.Push(ctx, "orders", job); err != nil {
		panic(err)
	}

	info, err := queues.Cancel(ctx, "orders", "remind-7")
	fmt.Println(info.State, err)

	_, err = queues.Cancel(ctx, "orders", "remind-8")
	fmt.Println(errors.Is(err, delayqueue.ErrNotFound))

	// Output:
	// canceled <nil>
	// true
}

// The error lists every invalid field of a job by its name in the HTTP API.
func ExampleJob_Normalize() {
	job := delayqueue.Job{Payload: []byte(`{"order":7}`), MaxAttempts: -3, AckTimeout: 13 * time.Hour}
	_, err := job.Normalize()
	if invalid, ok := errors.AsType[*fault.Error](err); ok && errors.Is(err, delayqueue.ErrInvalid) {
		for _, field := range invalid.Fields {
			fmt.Printf("%s %s\n", field.Field, field.Message)
		}
	}

	// Output:
	// max_attempts must be 1 to 100
	// ack_timeout_ms must be 1000 to 43200000
}
