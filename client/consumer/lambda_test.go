package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
)

// record is a message as Lambda hands it over. An id "a/g" is in the group g of a FIFO queue.
func record(id string, attributes map[string]string) events.SQSMessage {
	name, group, fifo := strings.Cut(id, "/")
	m := events.SQSMessage{
		MessageId: name, Body: `{"id":"` + name + `"}`, Attributes: map[string]string{"ApproximateReceiveCount": "3"},
		MessageAttributes: map[string]events.SQSMessageAttribute{}, EventSourceARN: "arn:aws:sqs:eu-central-1:1:orders",
	}
	if fifo {
		m.Attributes["MessageGroupId"], m.EventSourceARN = group, "arn:aws:sqs:eu-central-1:1:orders.fifo"
	}
	for k, v := range attributes {
		m.MessageAttributes[k] = events.SQSMessageAttribute{StringValue: aws.String(v), DataType: "String"}
	}
	return m
}

func event(ids ...string) events.SQSEvent {
	var e events.SQSEvent
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "/")
		e.Records = append(e.Records, record(id, job(name, 1)))
	}
	return e
}

func failed(t *testing.T, c *consumer.Consumer, e events.SQSEvent) []string {
	t.Helper()
	response, err := c.Lambda(t.Context(), e)
	require.NoError(t, err)
	ids := []string{}
	for _, f := range response.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

func TestAMessageIsReadWithAllThatSluiceSent(t *testing.T) {
	t.Parallel()
	attributes := job("order-42", 2)
	attributes["tenant"], attributes["traceparent"], attributes["sluice-headers"] = "gold", "00-1",
		`{"h7":"7","h8":"8"}`
	var got *consumer.Message
	c := newConsumer(t, consumer.Config{Handle: func(_ context.Context, m *consumer.Message) error {
		got = m
		return nil
	}})
	require.Empty(t, failed(t, c, events.SQSEvent{Records: []events.SQSMessage{record("m-1", attributes)}}))
	require.Equal(t, &consumer.Message{
		JobID: "order-42", Queue: "orders", Attempt: 2, RunAt: time.UnixMilli(1767323045678).UTC(),
		Payload: []byte(`{"id":"m-1"}`),
		Headers: map[string]string{"tenant": "gold", "traceparent": "00-1", "h7": "7", "h8": "8"}, MessageID: "m-1",
		Receives: 3,
	}, got)
	var payload struct{ ID string }
	require.NoError(t, got.Decode(&payload))
	require.Equal(t, "m-1", payload.ID)
	require.ErrorContains(t, got.Decode(new(int)), `error decoding the payload of the job "order-42"`)
}

func TestSuccessAcksAndFailureNacksAndBothLeaveSQS(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{}
	c := newConsumer(t, consumer.Config{Client: api.client(t), Concurrency: 1,
		Handle: func(_ context.Context, m *consumer.Message) error {
			switch m.JobID {
			case "bad":
				return errors.New("no stock")
			case "later":
				return consumer.RetryAfter(90*time.Second, errors.New("busy"))
			case "panics":
				panic("out of range")
			case "long":
				return errors.New(strings.Repeat("x", 5000))
			}
			return nil
		}})
	require.Empty(t, failed(t, c, event("good", "bad", "later", "panics", "long")))
	require.Equal(t, []string{"ack good 1", "nack bad 1 no stock", "nack later 1 busy in 90000 ms",
		"nack panics 1 panic: out of range",
		"nack long 1 " + strings.Repeat("x", 1024)}, api.made())
}

func TestAJobOfOneAttemptNeedsNoAckAndItsFailureStaysWithSQS(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{answers: map[string]string{"ack good": conflict(client.JobDispatched, 1),
		"nack bad": conflict(client.JobDispatched, 1)}}
	var log bytes.Buffer
	c := newConsumer(t, consumer.Config{
		Client: api.client(t), Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Handle: failing("bad"),
	})
	require.Equal(t, []string{"bad"}, failed(t, c, event("good", "bad")))
	require.NotContains(t, log.String(), "moved on", "that is as it should be")
	require.NotContains(t, log.String(), `{"id"`, "no payload in the log")
}

func failing(ids ...string) consumer.Handler {
	return func(_ context.Context, m *consumer.Message) error {
		if slices.Contains(ids, m.MessageID) {
			return errors.New("no")
		}
		return nil
	}
}

func TestAnAttemptThatIsOutOfDateIsNotTriedAgainThroughSQS(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{answers: map[string]string{"ack good": conflict(client.JobScheduled, 2),
		"nack bad": conflict(client.JobAwaitingAck, 2)}}
	c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
	require.Empty(t, failed(t, c, event("good", "bad")), "the next attempt is on its way already")
}

func TestWithoutTheAPIASuccessIsDoneAndAFailureIsKept(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{answers: map[string]string{"ack good": "away", "nack bad": "away"}}
	c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
	require.Equal(t, []string{"bad"}, failed(t, c, event("good", "bad")))
}

func TestMessagesThatAreNotSluicesAreHandledWithoutAcks(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{}
	c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
	forged := job("a", 1)
	forged["sluice-attempt"] = "one"
	require.Equal(t, []string{"bad"}, failed(t, c, events.SQSEvent{Records: []events.SQSMessage{
		record("good", nil), record("bad", nil), record("forged", forged),
	}}))
	require.Empty(t, api.made())

	none := newConsumer(t, consumer.Config{Handle: failing("bad")})
	require.Equal(t, []string{"bad"}, failed(t, none, event("good", "bad")), "without a client SQS sees to everything")
}

func TestTheFirstFailureOfAFIFOGroupEndsTheWorkOnThatGroup(t *testing.T) {
	t.Parallel()
	api := &fakeJobs{}
	var mu sync.Mutex
	var seen []string
	c := newConsumer(t, consumer.Config{Client: api.client(t),
		Handle: func(_ context.Context, m *consumer.Message) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, m.MessageID)
			return failing("a2")(t.Context(), m)
		}})
	require.Equal(t, []string{"a2", "a3"}, failed(t, c, event("a1/a", "b1/b", "a2/a", "b2/b", "a3/a")))
	require.ElementsMatch(t, []string{"a1", "a2", "b1", "b2"}, seen)
	require.ElementsMatch(t, []string{"ack a1 1", "ack b1 1", "ack b2 1"}, api.made(),
		"a nack would let the rest of the group overtake")
}

func TestMessagesOfOneGroupAreWorkedOnInOrderAndOthersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		order := map[string][]string{}
		var running, most atomic.Int64
		c := newConsumer(t, consumer.Config{Concurrency: 2, Handle: func(_ context.Context, m *consumer.Message) error {
			most.Store(max(most.Load(), running.Add(1)))
			pass(time.Second)
			running.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			order[m.Group] = append(order[m.Group], m.MessageID)
			return nil
		}})
		started := time.Now()
		require.Empty(t, failed(t, c, event("a1/a", "a2/a", "b1/b", "c1/c", "a3/a")))
		require.Equal(t, map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1"}, "c": {"c1"}}, order)
		require.EqualValues(t, 2, most.Load(), "never more than Concurrency")
		require.Equal(t, 3*time.Second, time.Since(started))
	})
}

func TestWhatCannotBeBegunInTheFunctionsTimeIsReportedAsFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := 0
		c := newConsumer(t, consumer.Config{Concurrency: 1,
			Handle: func(ctx context.Context, _ *consumer.Message) error {
				begun++
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(4 * time.Second):
					return nil
				}
			}})
		started := time.Now()
		response, err := c.Lambda(ctx, event("a", "b", "c", "d"))
		require.NoError(t, err)
		require.Equal(t, 9*time.Second, time.Since(started), "a second is kept for the answer")
		require.Equal(t, []events.SQSBatchItemFailure{{ItemIdentifier: "c"}, {ItemIdentifier: "d"}},
			response.BatchItemFailures)
		require.Equal(t, 3, begun)
	})
}

func TestAConsumerThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	_, err := consumer.New(consumer.Config{})
	require.EqualError(t, err, "the consumer has no handler: set Handle")
	_, err = consumer.New(consumer.Config{Handle: failing(), Concurrency: -1})
	require.EqualError(t, err, "the concurrency must be at least 1")
}

// pass lets time pass on the clock of testing/synctest.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // that clock is not real
