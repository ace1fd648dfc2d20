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

// Handler works on one attempt of a job, and obeys its context. It may be called from several
// goroutines at once.
type Handler func(ctx context.Context, m *Message) error

// Config describes a consumer.
type Config struct {
	// Client acks and nacks. Nil: never; for queues all of whose jobs have one attempt, which saves
	// a request for each.
	Client *client.Client
	// Handle does the work. Required.
	Handle Handler
	// Concurrency is how many messages are worked on at once. Default 10. Messages of one group of
	// a FIFO queue never are.
	Concurrency int
	// SettleTimeout is for an ack or a nack with its repetitions. Default 5 s.
	SettleTimeout time.Duration
	// Logger is told of failures. It is never given a payload. Default: nobody.
	Logger *slog.Logger
}

const (
	defaultConcurrency   = 10
	defaultSettleTimeout = 5 * time.Second
	maxErrorText         = 1024 // bytes of an error that a nack carries
)

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.SettleTimeout == 0 {
		c.SettleTimeout = defaultSettleTimeout
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

// Consumer works on messages. It is safe for concurrent use.
type Consumer struct {
	cfg Config
}

// New makes a Consumer.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg}, nil
}

// Causes of a handler's context.
var (
	// ErrStopping says that the loop is being stopped and its StopTimeout is over.
	ErrStopping = errors.New("the consumer is stopping")
	// ErrVisibilityLost says that the message could not be kept invisible: another consumer may
	// have it by now.
	ErrVisibilityLost = errors.New("the message became visible to other consumers")
)

// RetryAfter makes a handler's failure ask for the next attempt after d, instead of after the job's
// backoff.
func RetryAfter(d time.Duration, err error) error { return &delayedError{err: err, delay: d} }

type delayedError struct {
	err   error
	delay time.Duration
}

func (e *delayedError) Error() string { return e.err.Error() }
func (e *delayedError) Unwrap() error { return e.err }

// outcome is what becomes of a message in SQS.
type outcome struct {
	done bool
	// visibleIn is when a message that is not done is to be delivered again; negative leaves that
	// to SQS.
	visibleIn time.Duration
}

var (
	done = outcome{done: true}    //nolint:gochecknoglobals // a constant
	left = outcome{visibleIn: -1} //nolint:gochecknoglobals // a constant
)

// work handles a message and settles its job. The message is done when nobody needs to see it
// again.
func (c *Consumer) work(ctx context.Context, m *Message, fifo bool) outcome {
	err := c.handle(ctx, m)
	if err == nil {
		c.ack(ctx, m)
		return done
	}
	cause := context.Cause(ctx)
	abandoned := errors.Is(cause, ErrStopping) || errors.Is(cause, ErrVisibilityLost)
	c.log(ctx, slog.LevelWarn, "the handler failed", m, err)
	var delayed *delayedError
	hasDelay := errors.As(err, &delayed)
	switch {
	case errors.Is(cause, ErrStopping):
		return outcome{visibleIn: 0}
	case !abandoned && !fifo && c.nack(ctx, m, err, delayed):
		return done
	case hasDelay && !abandoned:
		return outcome{visibleIn: max(0, delayed.delay)}
	default:
		return left
	}
}

// handle calls the handler, and makes an error of a panic.
func (c *Consumer) handle(ctx context.Context, m *Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			c.cfg.Logger.ErrorContext(ctx, "the handler panicked", "job", m.JobID, "queue", m.Queue, "attempt",
				m.Attempt, "stack", string(debug.Stack()))
		}
	}()
	return c.cfg.Handle(ctx, m)
}

// ack says that the job is done. When that does not arrive, the job is sent again after its ack
// timeout; the message would not change that.
func (c *Consumer) ack(ctx context.Context, m *Message) {
	if c.cfg.Client == nil || m.JobID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.SettleTimeout)
	defer cancel()
	_, err := c.cfg.Client.Queue(m.Queue).Ack(ctx, m.JobID, m.Attempt)
	switch {
	case err == nil, needsNoAck(err):
	case errors.Is(err, client.ErrJobConflict), errors.Is(err, client.ErrNotFound):
		c.log(ctx, slog.LevelInfo, "the job had moved on before its ack", m, err)
	default:
		c.log(ctx, slog.LevelError, "the ack did not arrive; the job will be sent again", m, err)
	}
}

// nack says that the attempt failed, and reports whether Sluice sees to the next one.
func (c *Consumer) nack(ctx context.Context, m *Message, why error, delayed *delayedError) bool {
	if c.cfg.Client == nil || m.JobID == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.SettleTimeout)
	defer cancel()
	var delay *time.Duration
	if delayed != nil {
		delay = &delayed.delay
	}
	_, err := c.cfg.Client.Queue(m.Queue).Nack(ctx, m.JobID, m.Attempt, short(why.Error()), delay)
	switch {
	case err == nil:
		return true
	case needsNoAck(err), errors.Is(err, client.ErrNotFound):
		return false // a job of one attempt: SQS delivers its message again
	case errors.Is(err, client.ErrJobConflict):
		c.log(ctx, slog.LevelInfo, "the job had moved on before its nack", m, err)
		return true
	default:
		c.log(ctx, slog.LevelError, "the nack did not arrive; the message stays in SQS", m, err)
		return false
	}
}

// needsNoAck recognizes a job of one attempt.
func needsNoAck(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && errors.Is(e, client.ErrJobConflict) && e.State == client.JobDispatched
}

func short(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return text[:maxErrorText]
}

func (c *Consumer) log(ctx context.Context, level slog.Level, what string, m *Message, err error) {
	c.cfg.Logger.Log(ctx, level, what, "job", m.JobID, "queue", m.Queue, "attempt", m.Attempt, "message", m.MessageID,
		"error", err.Error())
}
