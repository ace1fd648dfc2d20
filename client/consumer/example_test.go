package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
	"github.com/sluicehq/sluice/client/internal/fakeapi"
)

// connect returns a client of an in-memory API. A real program sets only Endpoint, to the URL of
// its deployment.
func connect() *client.Client {
	c, err := client.New(client.Config{
		Endpoint:   "http://localhost:4000",
		HTTPClient: &http.Client{Transport: fakeapi.New()},
	})
	if err != nil {
		panic(err)
	}
	return c
}

// order is the payload of this example's jobs.
type order struct {
	ID string `json:"id"`
}

// A Lambda function passes the method Lambda to lambda.Start.
func ExampleConsumer_Lambda() {
	api, ctx := connect(), context.Background()
	c, err := consumer.New(consumer.Config{
		Client: api,
		Handle: func(_ context.Context, m *consumer.Message) error {
			var o order
			if err := m.Decode(&o); err != nil {
				return err
			}
			fmt.Println("shipping", o.ID, "attempt", m.Attempt)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	orders := api.Queue("orders")
	if _, err := orders.Push(ctx, client.Job{ID: "order-42", Payload: order{"42"}, MaxAttempts: 3}); err != nil {
		fmt.Println(err)
		return
	}
	response, err := c.Lambda(ctx, eventOf("order-42", `{"id":"42"}`)) // AWS Lambda makes this call
	fmt.Println("failures:", len(response.BatchItemFailures), err)

	job, err := orders.Get(ctx, "order-42")
	fmt.Println(job.State, err)
	// Output:
	// shipping 42 attempt 1
	// failures: 0 <nil>
	// succeeded <nil>
}

// A handler can choose the time of the next attempt.
func ExampleRetryAfter() {
	api, ctx := connect(), context.Background()
	c, err := consumer.New(consumer.Config{
		Client: api,
		Handle: func(context.Context, *consumer.Message) error {
			return consumer.RetryAfter(time.Hour, errors.New("the warehouse is closed"))
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	orders := api.Queue("orders")
	if _, err := orders.Push(ctx, client.Job{ID: "order-42", MaxAttempts: 3}); err != nil {
		fmt.Println(err)
		return
	}
	response, err := c.Lambda(ctx, eventOf("order-42", "null"))
	fmt.Println("failures:", len(response.BatchItemFailures), err) // Sluice retries the job, not SQS

	job, err := orders.Get(ctx, "order-42")
	fmt.Println(job.State, err)
	// Output:
	// failures: 0 <nil>
	// scheduled <nil>
}

// eventOf returns the event for the first attempt of a job.
func eventOf(id, payload string) consumer.Event {
	text := func(value string) consumer.EventAttribute {
		return consumer.EventAttribute{StringValue: value, DataType: "String"}
	}
	return consumer.Event{Records: []consumer.EventRecord{{
		MessageID: "message-1", Body: payload, EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
		MessageAttributes: map[string]consumer.EventAttribute{
			"sluice-job-id": text(id), "sluice-queue": text("orders"), "sluice-attempt": text("1"),
		},
	}}}
}
