// The sample consumer is a Lambda function that logs each job it receives. Run it with `go run
// ./localstack up --consumer orders=./localstack/sampleconsumer`. The payload {"fail_attempts": 2}
// makes the function fail the first two attempts of a job.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
)

func main() {
	c, err := newConsumer(os.Getenv("SLUICE_ENDPOINT"), slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "sampleconsumer:", err)
		os.Exit(1)
	}
	lambda.Start(c.Lambda)
}

func newConsumer(endpoint string, log *slog.Logger) (*consumer.Consumer, error) {
	api, err := client.New(client.Config{Endpoint: endpoint, Auth: client.AuthNone})
	if err != nil {
		return nil, fmt.Errorf("error configuring the client: %w", err)
	}
	return consumer.New(consumer.Config{Client: api, Logger: log,
		Handle: func(ctx context.Context, m *consumer.Message) error {
			var order struct {
				FailAttempts int `json:"fail_attempts"`
			}
			_ = m.Decode(&order) // a payload of another type requests no failure
			log.InfoContext(ctx, "received a job", "id", m.JobID, "queue", m.Queue, "attempt", m.Attempt)
			if m.Attempt <= order.FailAttempts {
				return fmt.Errorf("attempt %d of %d failed, as the payload requests", m.Attempt, order.FailAttempts)
			}
			return nil
		}})
}
