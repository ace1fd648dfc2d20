package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/sluicehq/sluice/client"
)

// Handler handles one attempt of a job. It must stop when ctx ends. The consumer calls it from
// several goroutines concurrently.
type Handler func(ctx context.Context, m *Message) error

// Config configures a [Consumer]. Only Handle is required.
type Config struct {
	// Client acknowledges and rejects jobs. If it is nil, the consumer does neither, which saves
	// one request per job. Use nil if every job of the queue has one attempt.
	Client *client.Client
	// Handle handles each message.
	Handle Handler
	// Concurrency is the maximum number of messages that are handled concurrently. The messages of
	// one FIFO message group are handled in sequence. Defaults to 10.
	Concurrency int
	// RequestTimeout is the time limit of an acknowledgement or rejection, including its retries.
	// Defaults to 5 s.
	RequestTimeout time.Duration
	// Logger receives failures, without payloads. Defaults to discarding them.
	Logger *slog.Logger
}

const (
	defaultConcurrency    = 10
	defaultRequestTimeout = 5 * time.Second
	maxErrorText          = 1024 // bytes of an error in a rejection
)

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = defaultRequestTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Handle == nil:
		return errors.New("the consumer has no handler: set Handle")
	case c.Concurrency < 0:
		return errors.New("the concurrency must be at least 1")
	}
	return nil
}

// Consumer handles messages. It is safe for concurrent use.
type Consumer struct {
	cfg Config
}

// New returns a Consumer. The error describes an invalid Config.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg}, nil
}

// Causes with which the consumer ends a handler's context; see context.Cause.
var (
	// ErrStopping is the cause if [Consumer.Run] is stopping and [Source.StopTimeout] has passed.
	ErrStopping = errors.New("the consumer is stopping")
	// ErrVisibilityLost is the cause if the message could not be kept invisible, and another
	// consumer may have received it.
	ErrVisibilityLost = errors.New("the message became visible to other consumers")
)

// RetryAfter returns an error for a handler to return. The next attempt is then due after d,
// instead of after the job's backoff.
func RetryAfter(d time.Duration, err error) error { return &delayedError{err: err, delay: d} }

type delayedError struct {
	err   error
	delay time.Duration
}

// Error implements error.
func (e *delayedError) Error() string { return e.err.Error() }

// Unwrap returns the handler's error.
func (e *delayedError) Unwrap() error { return e.err }

// outcome describes what to do with a message in SQS.
type outcome struct {
	// done reports that the consumer must delete the message.
	done bool
	// visibleIn is the time after which SQS delivers the message again if it is not done. A
	// negative duration keeps the visibility timeout of the message.
	visibleIn time.Duration
}

var (
	done      = outcome{done: true}    //nolint:gochecknoglobals // a constant
	leftToSQS = outcome{visibleIn: -1} //nolint:gochecknoglobals // a constant
)

// work handles a message, and acknowledges or rejects its job.
func (c *Consumer) work(ctx context.Context, m *Message, fifo bool) outcome {
	err := c.handle(ctx, m)
	if err == nil {
		c.ack(ctx, m)
		return done
	}
	c.log(ctx, slog.LevelWarn, "the handler failed", m, err)

	cause := context.Cause(ctx)
	if errors.Is(cause, ErrStopping) {
		return outcome{visibleIn: 0}
	}
	if errors.Is(cause, ErrVisibilityLost) {
		return leftToSQS // another consumer may be working on the attempt
	}

	var delayed *delayedError
	hasDelay := errors.As(err, &delayed)
	if !fifo && c.nack(ctx, m, err, delayed) {
		return done
	}
	if hasDelay {
		return outcome{visibleIn: max(0, delayed.delay)}
	}
	return leftToSQS
}

// handle calls the handler, and turns a panic into an error.
func (c *Consumer) handle(ctx context.Context, m *Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			c.cfg.Logger.ErrorContext(ctx, "the handler panicked",
				"job", m.JobID, "queue", m.Queue, "attempt", m.Attempt, "stack", string(debug.Stack()))
		}
	}()
	return c.cfg.Handle(ctx, m)
}

// ack acknowledges the job. If the request fails, Sluice sends the job again after the
// acknowledgement timeout. Keeping the message in SQS would only add another delivery, so the
// caller deletes it in any case.
func (c *Consumer) ack(ctx context.Context, m *Message) {
	if c.cfg.Client == nil || m.JobID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.RequestTimeout)
	defer cancel()

	_, err := c.cfg.Client.Queue(m.Queue).Ack(ctx, m.JobID, m.Attempt)
	switch {
	case err == nil, needsNoAck(err):
	case errors.Is(err, client.ErrJobConflict), errors.Is(err, client.ErrNotFound):
		c.log(ctx, slog.LevelInfo, "the acknowledgement was too late; the job no longer expects it", m, err)
	default:
		c.log(ctx, slog.LevelError, "the acknowledgement failed; the job will be sent again", m, err)
	}
}

// nack rejects the attempt. It reports whether Sluice, and not SQS, is responsible for the next
// attempt.
func (c *Consumer) nack(ctx context.Context, m *Message, why error, delayed *delayedError) bool {
	if c.cfg.Client == nil || m.JobID == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.RequestTimeout)
	defer cancel()

	o := client.NackOptions{Error: truncate(why.Error())}
	if delayed != nil {
		o.Delay = &delayed.delay
	}
	_, err := c.cfg.Client.Queue(m.Queue).Nack(ctx, m.JobID, m.Attempt, o)
	switch {
	case err == nil:
		return true
	case needsNoAck(err), errors.Is(err, client.ErrNotFound):
		return false // a job with one attempt: SQS delivers its message again
	case errors.Is(err, client.ErrJobConflict):
		c.log(ctx, slog.LevelInfo, "the rejection was too late; the job no longer expects it", m, err)
		return true
	default:
		c.log(ctx, slog.LevelError, "the rejection failed; the message stays in SQS", m, err)
		return false
	}
}

// needsNoAck reports whether the API refused an acknowledgement or a rejection because the job has
// only one attempt, which needs neither.
func needsNoAck(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && errors.Is(e, client.ErrJobConflict) && e.State == client.JobDispatched
}

func truncate(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return text[:maxErrorText]
}

func (c *Consumer) log(ctx context.Context, level slog.Level, text string, m *Message, err error) {
	c.cfg.Logger.Log(ctx, level, text,
		"job", m.JobID, "queue", m.Queue, "attempt", m.Attempt, "message", m.MessageID, "error", err.Error())
}
