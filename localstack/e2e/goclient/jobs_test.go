package goclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/consumer"
)

// inbox records the messages that it handles. It fails the first n attempts of a job with the
// payload {"fail": n}.
type inbox struct {
	mu   sync.Mutex
	seen []consumer.Message
}

type order struct {
	ID   string `json:"id"`
	Fail int    `json:"fail"`
}

func (i *inbox) handle(_ context.Context, m *consumer.Message) error {
	i.mu.Lock()
	i.seen = append(i.seen, *m)
	i.mu.Unlock()
	var o order
	if err := m.Decode(&o); err != nil {
		return err
	}
	if m.Attempt <= o.Fail {
		return consumer.RetryAfter(0, fmt.Errorf("attempt %d failed", m.Attempt))
	}
	return nil
}

func (i *inbox) of(id string) []consumer.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []consumer.Message
	for _, m := range i.seen {
		if m.JobID == id {
			out = append(out, m)
		}
	}
	return out
}

// consume runs a consumer on a queue until the test ends.
func consume(t *testing.T, queue string) *inbox {
	t.Helper()
	box := &inbox{}
	loop, err := consumer.New(consumer.Config{Client: connect(t), Handle: box.handle})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- loop.Run(ctx, consumer.Source{SQS: system.SQS, QueueURL: system.QueueURLs[queue], Wait: time.Second})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return box
}

func becomes(t *testing.T, q *client.Queue, id string, want client.JobState) client.JobInfo {
	t.Helper()
	var j client.JobInfo
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		j, err = q.Get(context.Background(), id)
		require.NoError(c, err)
		require.Equal(c, want, j.State, "the state of %s", id)
	}, patience, 20*time.Millisecond)
	return j
}

func TestConsumer(t *testing.T) {
	t.Parallel()
	t.Run("Run acknowledges, retries and gives up", func(t *testing.T) {
		t.Parallel()
		box, q, ctx := consume(t, "orders"), connect(t).Queue("orders"), t.Context()

		t.Run("a job that succeeds", func(t *testing.T) {
			id := name("job")
			receipt, err := q.Push(ctx, client.Job{ID: id, Payload: order{ID: "a"}, Delay: 200 * time.Millisecond,
				MaxAttempts: 3, Headers: map[string]string{"tenant": "gold"}})
			require.NoError(t, err)
			require.Equal(t, client.JobScheduled, receipt.State)
			again, err := q.Push(ctx, client.Job{ID: id, Payload: order{ID: "b"}})
			require.NoError(t, err)
			require.True(t, again.Duplicate)
			require.True(t, again.PayloadDiffers)

			becomes(t, q, id, client.JobSucceeded)
			seen := box.of(id)
			require.Len(t, seen, 1)
			require.Equal(t, "gold", seen[0].Headers["tenant"])
			require.Equal(t, receipt.RunAt, seen[0].RunAt)
			require.Equal(t, 1, seen[0].Attempt)
		})
		t.Run("a job that fails twice", func(t *testing.T) {
			id := name("job")
			_, err := q.Push(ctx, client.Job{ID: id, Payload: order{Fail: 2}, MaxAttempts: 3})
			require.NoError(t, err)
			require.Equal(t, 3, becomes(t, q, id, client.JobSucceeded).Attempt)
			require.Len(t, box.of(id), 3)
		})
		t.Run("a job that always fails, and is redriven", func(t *testing.T) {
			id := name("job")
			_, err := q.Push(ctx, client.Job{ID: id, Payload: order{Fail: 2}, MaxAttempts: 2})
			require.NoError(t, err)
			require.Equal(t, "attempt 2 failed", becomes(t, q, id, client.JobDead).LastError)
			moved, err := q.Redrive(ctx, client.RedriveOptions{IDs: []string{id, name("unknown")}})
			require.NoError(t, err)
			require.EqualValues(t, 1, moved)
			becomes(t, q, id, client.JobDead)
		})
		t.Run("a job with one attempt", func(t *testing.T) {
			id := name("job")
			_, err := q.Push(ctx, client.Job{ID: id, Payload: order{}})
			require.NoError(t, err)
			becomes(t, q, id, client.JobDispatched)
			require.Eventually(t, func() bool { return len(box.of(id)) == 1 }, patience, 10*time.Millisecond)
		})
	})

	t.Run("Lambda handles the event of a FIFO queue", func(t *testing.T) {
		t.Parallel()
		box, q, ctx := &inbox{}, connect(t).Queue("pay.fifo"), t.Context()
		handler, err := consumer.New(consumer.Config{Client: connect(t), Handle: box.handle})
		require.NoError(t, err)
		id := name("job")
		_, err = q.Push(ctx, client.Job{ID: id, Payload: order{}, MaxAttempts: 2, Group: "g"})
		require.NoError(t, err)
		text, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{receive(t, "pay.fifo")}})
		require.NoError(t, err)
		var event consumer.Event // lambda.Start decodes the event in this way
		require.NoError(t, json.Unmarshal(text, &event))
		response, err := handler.Lambda(ctx, event)
		require.NoError(t, err)
		require.Empty(t, response.BatchItemFailures)
		require.Len(t, box.of(id), 1)
		becomes(t, q, id, client.JobSucceeded)
	})
}

// receive receives the next message of a queue, deletes it, and returns it as a record of a Lambda
// event.
func receive(t *testing.T, queue string) events.SQSMessage {
	t.Helper()
	var out *sqs.ReceiveMessageOutput
	require.Eventually(t, func() bool {
		var err error
		out, err = system.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(system.QueueURLs[queue]), MessageAttributeNames: []string{"All"},
		})
		return err == nil && len(out.Messages) > 0
	}, patience, 20*time.Millisecond)
	got := out.Messages[0]
	_, err := system.SQS.DeleteMessage(t.Context(),
		&sqs.DeleteMessageInput{QueueUrl: aws.String(system.QueueURLs[queue]), ReceiptHandle: got.ReceiptHandle})
	require.NoError(t, err)
	m := events.SQSMessage{
		MessageId: *got.MessageId, Body: *got.Body, EventSourceARN: "arn:aws:sqs:eu-central-1:1:" + queue,
		MessageAttributes: make(map[string]events.SQSMessageAttribute),
	}
	for name, value := range got.MessageAttributes {
		m.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: value.StringValue,
			DataType: *value.DataType}
	}
	return m
}

func TestQueue(t *testing.T) {
	t.Parallel()
	t.Run("reads, changes, lists and cancels a scheduled job", func(t *testing.T) {
		t.Parallel()
		q, ctx, id := connect(t).Queue("orders"), t.Context(), name("job:1")
		_, err := q.Push(ctx, client.Job{ID: id, Payload: "old", Delay: time.Hour})
		require.NoError(t, err)
		at := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Millisecond)
		changed, err := q.Reschedule(ctx, id, client.JobChange{RunAt: at, Payload: "new"})
		require.NoError(t, err)
		require.Equal(t, at, changed.RunAt)
		require.JSONEq(t, `"new"`, string(changed.Payload))

		found := false
		for j, err := range q.List(ctx, client.JobScheduled) {
			require.NoError(t, err)
			found = found || j.ID == id
		}
		require.True(t, found)

		status, err := q.Cancel(ctx, id)
		require.NoError(t, err)
		require.Equal(t, client.JobCanceled, status.State)
		_, err = q.Reschedule(ctx, id, client.JobChange{RunAt: at})
		require.ErrorIs(t, err, client.ErrJobConflict)
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, client.JobCanceled, e.State)
		_, err = q.Get(ctx, name("unknown"))
		require.ErrorIs(t, err, client.ErrJobNotFound)
		_, err = connect(t).Queue("unknown").Push(ctx, client.Job{})
		require.ErrorIs(t, err, client.ErrQueueNotFound)
	})

	t.Run("enqueues each job of a repeated batch once", func(t *testing.T) {
		t.Parallel()
		q, ctx := connect(t).Queue("paused"), t.Context()
		_, err := q.Pause(ctx, time.Time{})
		require.NoError(t, err)
		jobs := make([]client.Job, 700)
		for i := range jobs {
			jobs[i] = client.Job{ID: fmt.Sprintf("%s-%d", name("batch"), i), Payload: i}
		}
		jobs[3].MaxAttempts = 101
		for round := range 2 {
			results, err := q.PushBatch(ctx, jobs)
			require.NoError(t, err)
			for i, r := range results {
				if i == 3 {
					require.ErrorIs(t, r.Err, client.ErrInvalidRequest)
					continue
				}
				require.NoError(t, r.Err)
				require.Equal(t, jobs[i].ID, r.ID)
				require.Equal(t, round == 1, r.Duplicate)
			}
		}
		stats, err := q.Stats(ctx)
		require.NoError(t, err)
		require.True(t, stats.Paused)
		require.EqualValues(t, 699, stats.Due)
		all, err := connect(t).Queues(ctx)
		require.NoError(t, err)
		require.Len(t, all, 3)
		stats, err = q.Resume(ctx)
		require.NoError(t, err)
		require.False(t, stats.Paused)
	})

	t.Run("refuses an acknowledgement of a different attempt", func(t *testing.T) {
		t.Parallel()
		q, ctx, id := connect(t).Queue("orders"), t.Context(), name("job")
		_, err := q.Push(ctx, client.Job{ID: id, Delay: time.Hour, MaxAttempts: 2})
		require.NoError(t, err)
		_, ackErr := q.Ack(ctx, id, 1)
		_, nackErr := q.Nack(ctx, id, 2, client.NackOptions{Error: "forged"})
		for _, err := range []error{ackErr, nackErr} {
			require.ErrorIs(t, err, client.ErrJobConflict)
			e, ok := errors.AsType[*client.Error](err)
			require.True(t, ok)
			require.Equal(t, client.JobScheduled, e.State)
		}
	})
}
