package poller_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/awstest"
	"github.com/sluicehq/sluice/localstack/poller"
	"github.com/sluicehq/sluice/localstack/redistest"
)

// consumer is a fake function that records each batch. The field answer computes the function's
// answer to a batch.
type consumer struct {
	answer func(events.SQSEvent) (string, error)

	mu   sync.Mutex
	seen [][]string
	last events.SQSEvent
}

func (c *consumer) Invoke(_ context.Context, _ string, payload []byte) ([]byte, error) {
	var e events.SQSEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var bodies []string
	for _, r := range e.Records {
		bodies = append(bodies, r.Body)
	}
	c.seen, c.last = append(c.seen, bodies), e
	text, err := c.answer(e)
	return []byte(text), err
}

func (c *consumer) times(body string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, bodies := range c.seen {
		if slices.Contains(bodies, body) {
			n++
		}
	}
	return n
}

func deliver(t *testing.T, c *consumer, bodies ...string) {
	t.Helper()
	cloud := awstest.Start(t)
	url := cloud.CreateQueue(t, redistest.Name("poller"), map[string]string{"VisibilityTimeout": "1"})
	for _, body := range bodies {
		_, err := cloud.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(url), MessageBody: aws.String(body),
			MessageAttributes: map[string]types.MessageAttributeValue{"sluice-job-id": {DataType: aws.String("String"),
				StringValue: aws.String("id-" + body)}},
		})
		require.NoError(t, err)
	}
	p := poller.Start(cloud.SQS, c, poller.Mapping{QueueURL: url, Function: "consumer"})
	t.Cleanup(p.Stop)
}

const patience = 20 * time.Second

func TestPoller(t *testing.T) {
	t.Parallel()
	t.Run("redelivers only the messages that the answer reports as failed", func(t *testing.T) {
		t.Parallel()
		c := &consumer{answer: func(e events.SQSEvent) (string, error) {
			var r events.SQSEventResponse
			for _, m := range e.Records {
				if m.Body == "bad" {
					r.BatchItemFailures = append(r.BatchItemFailures,
						events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
				}
			}
			text, err := json.Marshal(r)
			return string(text), err
		}}
		deliver(t, c, "good", "bad", "fine")
		require.Eventually(t, func() bool { return c.times("bad") >= 3 }, patience, 10*time.Millisecond)
		require.Equal(t, 1, c.times("good"))
		require.Equal(t, 1, c.times("fine"))
		c.mu.Lock()
		defer c.mu.Unlock()
		record := c.last.Records[0]
		require.Equal(t, "id-bad", *record.MessageAttributes["sluice-job-id"].StringValue)
		require.Equal(t, "aws:sqs", record.EventSource)
		require.NotEmpty(t, record.ReceiptHandle)
	})

	t.Run("redelivers the complete batch after a failure", func(t *testing.T) {
		t.Parallel()
		for name, answer := range map[string]func(events.SQSEvent) (string, error){
			"the function failed": func(events.SQSEvent) (string, error) {
				return "", errors.New("boom")
			},
			"the answer names an unknown message": func(events.SQSEvent) (string, error) {
				return `{"batchItemFailures":[{"itemIdentifier":"x"}]}`, nil
			},
			"the answer names an empty message ID": func(events.SQSEvent) (string, error) {
				return `{"batchItemFailures":[{"itemIdentifier":""}]}`, nil
			},
			"the answer is not a partial batch response": func(events.SQSEvent) (string, error) { return `[1]`, nil },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := &consumer{answer: answer}
				deliver(t, c, "a")
				require.Eventually(t, func() bool { return c.times("a") >= 2 }, patience, 10*time.Millisecond)
			})
		}
	})

	t.Run("deletes the batch after an answer without failures", func(t *testing.T) {
		t.Parallel()
		for _, answer := range []string{``, `null`, `{}`, `{"batchItemFailures":[]}`} {
			t.Run("answer "+answer, func(t *testing.T) {
				t.Parallel()
				c := &consumer{answer: func(e events.SQSEvent) (string, error) {
					if e.Records[0].Body == "first" {
						return answer, nil
					}
					return "", errors.New("again")
				}}
				deliver(t, c, "first", "first", "first")
				deliver(t, c, "later")
				require.Eventually(t, func() bool {
					return c.times("later") >= 5
				}, patience, 10*time.Millisecond, "a failed message must be redelivered after each visibility timeout")
				require.LessOrEqual(t, c.times("first"), 3, "the messages of the first batch must not be redelivered")
			})
		}
	})
}
