package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client/consumer"
)

// loop is a running consumer on the clock of testing/synctest.
type loop struct {
	*testing.T
	queue *fakeQueue
	api   *fakeJobs
	stop  context.CancelFunc
	over  chan error

	mu    sync.Mutex
	seen  []string
	ended []result
}

// result is the result of one call of the handler.
type result struct {
	err   error
	after time.Duration
}

func (l *loop) results() []result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]result{}, l.ended...)
}

func (l *loop) handled() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.seen...)
}

func (l *loop) end() {
	l.stop()
	require.NoError(l, <-l.over)
}

func inLoop(t *testing.T, queue *fakeQueue, source consumer.Source, handle consumer.Handler, test func(*loop)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &loop{T: t, queue: queue, api: &fakeJobs{}, over: make(chan error, 1)}
		ctx, stop := context.WithCancel(t.Context())
		l.stop = stop
		c := newConsumer(t, consumer.Config{Client: l.api.client(t),
			Handle: func(ctx context.Context, m *consumer.Message) error {
				l.mu.Lock()
				l.seen = append(l.seen, m.MessageID)
				l.mu.Unlock()
				started := time.Now()
				err := handle(ctx, m)
				l.mu.Lock()
				l.ended = append(l.ended, result{err, time.Since(started)})
				l.mu.Unlock()
				return err
			}})
		source.SQS, source.QueueURL = queue, "https://sqs.test/1/orders"
		if queue.fifo {
			source.QueueURL += ".fifo"
		}
		go func() { l.over <- c.Run(ctx, source) }()
		test(l)
		stop()
	})
}

// busy works for d, or until ctx ends.
func busy(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestRun(t *testing.T) {
	t.Run("acknowledges jobs and deletes messages in few requests", func(t *testing.T) {
		inLoop(t, &fakeQueue{}, consumer.Source{}, failing("bad"), func(l *loop) {
			for i := range 9 {
				l.queue.send(fmt.Sprint("m", i), "", job(fmt.Sprint("j", i), 1))
			}
			l.queue.send("bad", "", job("bad", 1))
			pass(time.Second)
			require.Empty(l, l.queue.left())
			require.Len(l, l.api.made(), 10)
			require.Contains(l, l.api.made(), "nack bad 1 no")
			require.Equal(l, 1, l.queue.count("delete"))
			l.end()
		})
	})

	t.Run("keeps a message invisible while its handler works", func(t *testing.T) {
		handle := func(ctx context.Context, _ *consumer.Message) error { return busy(ctx, 10*time.Minute) }
		inLoop(t, &fakeQueue{}, consumer.Source{Visibility: 30 * time.Second}, handle, func(l *loop) {
			l.queue.send("a", "", job("a", 1))
			l.queue.send("b", "", job("b", 1))
			pass(11 * time.Minute)
			require.ElementsMatch(l, []string{"a", "b"}, l.handled(), "each message is delivered once")
			require.Empty(l, l.queue.left())
			require.InDelta(l, 60, l.queue.count("change"), 1, "one request for both messages, every ten seconds")
			l.end()
		})
	})

	t.Run("ends the handler's context when the message becomes visible", func(t *testing.T) {
		handle := func(ctx context.Context, _ *consumer.Message) error { return busy(ctx, time.Hour) }
		inLoop(t, &fakeQueue{}, consumer.Source{Visibility: 30 * time.Second}, handle, func(l *loop) {
			l.queue.send("a", "", job("a", 1))
			pass(15 * time.Second) // its visibility was extended once, after ten seconds
			l.queue.inject(func(operation string) error {
				if operation == "change" || operation == "receive" {
					return errors.New("throttled")
				}
				return nil
			})
			pass(24 * time.Second)
			require.Empty(l, l.results())
			pass(2 * time.Second)
			require.ErrorIs(l, l.results()[0].err, consumer.ErrVisibilityLost)
			require.InDelta(l, 40, l.results()[0].after.Seconds(), 0.1, "it ends when the last extension has passed")
			require.Empty(l, l.api.made(), "another consumer may be working on the attempt")
			require.Equal(l, []string{"a"}, l.queue.left())
			l.end()
		})
	})

	t.Run("leaves failures of other senders' messages to SQS", func(t *testing.T) {
		inLoop(t, &fakeQueue{}, consumer.Source{Visibility: 30 * time.Second},
			func(_ context.Context, m *consumer.Message) error {
				if m.Receives < 3 {
					return consumer.RetryAfter(5*time.Second, errors.New("no"))
				}
				return nil
			}, func(l *loop) {
				l.queue.send("a", "", nil) // not sent by Sluice
				pass(time.Second)
				require.InDelta(l, 4, l.queue.visible("a").Seconds(), 0.1, "after the delay of RetryAfter")
				pass(20 * time.Second)
				require.Len(l, l.handled(), 3)
				require.Empty(l, l.queue.left())
				l.end()
			})
	})

	t.Run("keeps the order of a FIFO group through failures", func(t *testing.T) {
		tries := 0
		inLoop(t, &fakeQueue{fifo: true}, consumer.Source{Visibility: 30 * time.Second},
			func(_ context.Context, m *consumer.Message) error {
				if m.MessageID == "a2" {
					if tries++; tries < 3 {
						return errors.New("no")
					}
				}
				return nil
			}, func(l *loop) {
				for _, id := range []string{"a1", "a2", "a3"} {
					l.queue.send(id, "a", job(id, 1))
				}
				pass(5 * time.Minute)
				require.Equal(l, []string{"a1", "a2", "a2", "a2", "a3"}, l.handled())
				require.Empty(l, l.queue.left())
				require.Equal(l, []string{"ack a1 1", "ack a2 1", "ack a3 1"}, l.api.made())
				l.end()
			})
	})

	t.Run("waits for handlers when it stops", func(t *testing.T) {
		handle := func(ctx context.Context, _ *consumer.Message) error { return busy(ctx, 10*time.Second) }
		inLoop(t, &fakeQueue{}, consumer.Source{StopTimeout: time.Minute}, handle, func(l *loop) {
			l.queue.send("a", "", job("a", 1))
			pass(time.Second)
			started := time.Now()
			l.end()
			require.InDelta(l, 9, time.Since(started).Seconds(), 0.1)
			require.Equal(l, []string{"ack a 1"}, l.api.made())
			require.Empty(l, l.queue.left(), "the message is deleted before Run returns")
		})
	})

	t.Run("releases the messages of handlers that exceed StopTimeout", func(t *testing.T) {
		handle := func(ctx context.Context, _ *consumer.Message) error { return busy(ctx, time.Hour) }
		inLoop(t, &fakeQueue{fifo: true}, consumer.Source{StopTimeout: 5 * time.Second}, handle, func(l *loop) {
			l.queue.send("a1", "a", job("a1", 1))
			l.queue.send("a2", "a", job("a2", 1))
			pass(time.Second)
			started := time.Now()
			l.end()
			require.InDelta(l, 5, time.Since(started).Seconds(), 0.1)
			require.ErrorIs(l, l.results()[0].err, consumer.ErrStopping)
			require.Empty(l, l.api.made(), "an interrupted attempt is not rejected")
			require.Equal(l, []string{"a1", "a2"}, l.queue.left())
			for _, id := range l.queue.left() {
				require.LessOrEqual(l, l.queue.visible(id), time.Duration(0), "the message is visible immediately")
			}
			require.Equal(l, []string{"a1"}, l.handled())
		})
	})

	t.Run("receives at most Concurrency messages", func(t *testing.T) {
		handle := func(ctx context.Context, _ *consumer.Message) error { return busy(ctx, time.Minute) }
		inLoop(t, &fakeQueue{}, consumer.Source{}, handle, func(l *loop) {
			for i := range 25 {
				l.queue.send(fmt.Sprint("m", i), "", job(fmt.Sprint("j", i), 1))
			}
			pass(30 * time.Second)
			require.Len(l, l.handled(), 10)
			waiting := 0
			for _, id := range l.queue.left() {
				if l.queue.visible(id) <= 0 {
					waiting++
				}
			}
			require.Equal(l, 15, waiting, "the remaining messages are visible to other consumers")
			pass(3 * time.Minute)
			require.Empty(l, l.queue.left())
			l.end()
		})
	})

	t.Run("continues after an outage, and fails if the queue does not exist", func(t *testing.T) {
		queue := &fakeQueue{fail: func(string) error { return errors.New("connection refused") }}
		inLoop(t, queue, consumer.Source{}, failing(), func(l *loop) {
			pass(5 * time.Minute)
			require.Less(l, queue.count("receive"), 150, "Run backs off")
			queue.inject(nil)
			queue.send("a", "", job("a", 1))
			pass(15 * time.Second)
			require.Equal(l, []string{"ack a 1"}, l.api.made())

			queue.inject(func(string) error { return &types.QueueDoesNotExist{} })
			var gone *types.QueueDoesNotExist
			require.ErrorAs(l, <-l.over, &gone)
		})
	})

	t.Run("repeats a failed delete", func(t *testing.T) {
		deletes := 0
		queue := &fakeQueue{fail: func(operation string) error {
			if operation == "delete" {
				if deletes++; deletes < 3 {
					return errors.New("throttled")
				}
			}
			return nil
		}}
		inLoop(t, queue, consumer.Source{}, failing(), func(l *loop) {
			l.queue.send("a", "", job("a", 1))
			pass(time.Second)
			require.Empty(l, l.queue.left())
			l.end()
		})
	})

	t.Run("refuses an invalid Source", func(t *testing.T) {
		t.Parallel()
		c := newConsumer(t, consumer.Config{Handle: failing()})
		for want, source := range map[string]consumer.Source{
			"the source needs SQS and QueueURL":     {},
			"the visibility must be 3 s to 12 h":    {SQS: &fakeQueue{}, QueueURL: "q", Visibility: time.Second},
			"the wait must be up to 20 s":           {SQS: &fakeQueue{}, QueueURL: "q", Wait: time.Minute},
			"the stop timeout must not be negative": {SQS: &fakeQueue{}, QueueURL: "q", StopTimeout: -1},
		} {
			require.EqualError(t, c.Run(t.Context(), source), want)
		}
	})
}
