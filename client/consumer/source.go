package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SQS is the part of *sqs.Client that [Consumer.Run] uses.
type SQS interface {
	ReceiveMessage(
		context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options),
	) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(
		context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(
		context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Source is a queue to receive messages from. SQS and QueueURL are required.
type Source struct {
	// SQS is a client for the queue's region.
	SQS SQS
	// QueueURL is the URL of the queue. A FIFO queue's URL ends with ".fifo".
	QueueURL string
	// Visibility is the visibility timeout of received messages: whole seconds, 3 s to 12 h. While
	// a handler works, the consumer extends the timeout after each third of it. Defaults to 30 s.
	Visibility time.Duration
	// Wait is the maximum time that a request waits for messages: whole seconds, up to 20 s.
	// Defaults to 20 s.
	Wait time.Duration
	// StopTimeout is the time that handlers may continue after the context of [Consumer.Run] has
	// ended. Defaults to 20 s.
	StopTimeout time.Duration
}

const (
	defaultVisibility  = 30 * time.Second
	defaultWait        = 20 * time.Second
	defaultStopTimeout = 20 * time.Second
)

func (s Source) withDefaults() Source {
	if s.Visibility == 0 {
		s.Visibility = defaultVisibility
	}
	if s.Wait == 0 {
		s.Wait = defaultWait
	}
	if s.StopTimeout == 0 {
		s.StopTimeout = defaultStopTimeout
	}
	return s
}

func (s Source) validate() error {
	switch {
	case s.SQS == nil || s.QueueURL == "":
		return errors.New("the source needs SQS and QueueURL")
	case s.Visibility < 3*time.Second || s.Visibility > maxVisibility:
		return errors.New("the visibility must be 3 s to 12 h")
	case s.Wait < 0 || s.Wait > 20*time.Second:
		return errors.New("the wait must be up to 20 s")
	case s.StopTimeout < 0:
		return errors.New("the stop timeout must not be negative")
	}
	return nil
}
