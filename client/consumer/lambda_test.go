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

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
)

// record returns a message of a Lambda event. The ID "a/g" means the message "a" in the group "g"
// of a FIFO queue.
func record(id string, attributes map[string]string) consumer.EventRecord {
	name, group, fifo := strings.Cut(id, "/")
	m := consumer.EventRecord{
		MessageID: name, Body: `{"id":"` + name + `"}`, Attributes: map[string]string{"ApproximateReceiveCount": "3"},
		MessageAttributes: map[string]consumer.EventAttribute{}, EventSourceARN: "arn:aws:sqs:eu-central-1:1:orders",
	}
	if fifo {
		m.Attributes["MessageGroupId"], m.EventSourceARN = group, "arn:aws:sqs:eu-central-1:1:orders.fifo"
	}
	for k, v := range attributes {
		m.MessageAttributes[k] = consumer.EventAttribute{StringValue: v, DataType: "String"}
	}
	return m
}

func event(ids ...string) consumer.Event {
	var e consumer.Event
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "/")
		e.Records = append(e.Records, record(id, job(name, 1)))
	}
	return e
}

func failed(t *testing.T, c *consumer.Consumer, e consumer.Event) []string {
	t.Helper()
	response, err := c.Lambda(t.Context(), e)
	require.NoError(t, err)
	ids := []string{}
	for _, f := range response.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

func TestLambda(t *testing.T) {
	t.Parallel()
	t.Run("reads every attribute of a message", func(t *testing.T) {
		t.Parallel()
		attributes := job("order-42", 2)
		attributes["tenant"], attributes["traceparent"], attributes["sluice-headers"] = "gold", "00-1",
			`{"h7":"7","h8":"8"}`
		var got *consumer.Message
		c := newConsumer(t, consumer.Config{Handle: func(_ context.Context, m *consumer.Message) error {
			got = m
			return nil
		}})
		require.Empty(t, failed(t, c, consumer.Event{Records: []consumer.EventRecord{record("m-1", attributes)}}))
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
	})

	t.Run("acknowledges successes and rejects failures", func(t *testing.T) {
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
	})

	t.Run("leaves the failure of a job with one attempt to SQS", func(t *testing.T) {
		t.Parallel()
		api := &fakeJobs{answers: map[string]string{"ack good": conflict(client.JobDispatched, 1),
			"nack bad": conflict(client.JobDispatched, 1)}}
		var log bytes.Buffer
		c := newConsumer(t, consumer.Config{
			Client: api.client(t), Concurrency: 1, Handle: failing("bad"),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.Equal(t, []string{"bad"}, failed(t, c, event("good", "bad")))
		require.NotContains(t, log.String(), "too late", "a conflict is normal for a job with one attempt")
		require.NotContains(t, log.String(), `{"id"`, "payloads are not logged")
	})

	t.Run("deletes the message of an outdated attempt", func(t *testing.T) {
		t.Parallel()
		api := &fakeJobs{answers: map[string]string{"ack good": conflict(client.JobScheduled, 2),
			"nack bad": conflict(client.JobAwaitingAck, 2)}}
		c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
		require.Empty(t, failed(t, c, event("good", "bad")), "Sluice has already scheduled the next attempt")
	})

	t.Run("keeps only failures in SQS if the API is unreachable", func(t *testing.T) {
		t.Parallel()
		api := &fakeJobs{answers: map[string]string{"ack good": "unreachable", "nack bad": "unreachable"}}
		c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
		require.Equal(t, []string{"bad"}, failed(t, c, event("good", "bad")))
	})

	t.Run("handles messages of other senders without acknowledgement", func(t *testing.T) {
		t.Parallel()
		api := &fakeJobs{}
		c := newConsumer(t, consumer.Config{Client: api.client(t), Handle: failing("bad")})
		forged := job("a", 1)
		forged["sluice-attempt"] = "one"
		require.Equal(t, []string{"bad"}, failed(t, c, consumer.Event{Records: []consumer.EventRecord{
			record("good", nil), record("bad", nil), record("forged", forged),
		}}))
		require.Empty(t, api.made())

		none := newConsumer(t, consumer.Config{Handle: failing("bad")})
		require.Equal(t, []string{"bad"}, failed(t, none, event("good", "bad")),
			"without a client, SQS redelivers failed messages")
	})

	t.Run("stops a FIFO group at its first failure", func(t *testing.T) {
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
			"a2 is not rejected, because Sluice would send its next attempt after the rest of the group")
	})

	t.Run("handles the messages of a group in order, and groups concurrently", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			order := map[string][]string{}
			var running, most atomic.Int64
			handle := func(_ context.Context, m *consumer.Message) error {
				most.Store(max(most.Load(), running.Add(1)))
				pass(time.Second)
				running.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				order[m.Group] = append(order[m.Group], m.MessageID)
				return nil
			}
			c := newConsumer(t, consumer.Config{Concurrency: 2, Handle: handle})
			started := time.Now()
			require.Empty(t, failed(t, c, event("a1/a", "a2/a", "b1/b", "c1/c", "a3/a")))
			require.Equal(t, map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1"}, "c": {"c1"}}, order)
			require.EqualValues(t, 2, most.Load(), "at most Concurrency handlers run")
			require.Equal(t, 3*time.Second, time.Since(started))
		})
	})

	t.Run("reports messages whose handler did not start in time", func(t *testing.T) {
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
			require.Equal(t, 9*time.Second, time.Since(started), "the handlers end 1 s before the deadline")
			require.Equal(t, []consumer.EventFailure{{ItemIdentifier: "c"}, {ItemIdentifier: "d"}},
				response.BatchItemFailures)
			require.Equal(t, 3, begun)
		})
	})
}

func failing(ids ...string) consumer.Handler {
	return func(_ context.Context, m *consumer.Message) error {
		if slices.Contains(ids, m.MessageID) {
			return errors.New("no")
		}
		return nil
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	_, err := consumer.New(consumer.Config{})
	require.EqualError(t, err, "the consumer has no handler: set Handle")
	_, err = consumer.New(consumer.Config{Handle: failing(), Concurrency: -1})
	require.EqualError(t, err, "the concurrency must be at least 1")
}

// pass waits for d on the clock of testing/synctest.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // not the real clock
