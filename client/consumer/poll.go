package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SQS is what the loop needs of an *sqs.Client.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput,
		...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput,
		...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Source is a queue to receive from.
type Source struct {
	// SQS and QueueURL are required.
	SQS      SQS
	QueueURL string
	// Visibility is how long a message stays invisible to others without an extension; it is
	// extended each third of it while its handler runs. Whole seconds, 3 s to 12 h. Default 30 s.
	Visibility time.Duration
	// Wait is how long one request waits for messages: whole seconds up to 20 s, which is the
	// default.
	Wait time.Duration
	// StopTimeout is how long handlers may go on once the loop is stopped. Default 20 s.
	StopTimeout time.Duration
}

const (
	defaultVisibility  = 30 * time.Second
	defaultWait        = 20 * time.Second
	defaultStopTimeout = 20 * time.Second
	maxReceive         = 10 // messages of one request, by SQS
	maxPollBackoff     = 10 * time.Second
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
	case s.Visibility < 3*time.Second || s.Visibility > 12*time.Hour:
		return errors.New("the visibility must be 3 s to 12 h")
	case s.Wait < 0 || s.Wait > 20*time.Second:
		return errors.New("the wait must be up to 20 s")
	case s.StopTimeout < 0:
		return errors.New("the stop timeout must not be negative")
	}
	return nil
}

// Run receives messages and works on them until ctx ends. Then it receives no more, lets handlers
// go on for StopTimeout, ends their contexts with [ErrStopping], and returns nil when the last one
// has returned. What was not done by then is visible to other consumers at once.
//
// A queue that does not exist is an error; a queue that cannot be reached is asked again.
func (c *Consumer) Run(ctx context.Context, s Source) error {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return err
	}
	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	p := &poller{consumer: c, source: s, slots: make(chan struct{}, c.cfg.Concurrency),
		fifo: strings.HasSuffix(s.QueueURL, ".fifo")}
	p.deleter = newDeleter(context.WithoutCancel(ctx), s, c.cfg.Logger)
	err := p.poll(ctx, working)
	late := time.AfterFunc(s.StopTimeout, func() { end(ErrStopping) })
	p.running.Wait()
	late.Stop()
	p.deleter.close()
	return err
}

// poller is one loop.
type poller struct {
	consumer *Consumer
	source   Source
	fifo     bool
	slots    chan struct{} // taken by what is being worked on
	running  sync.WaitGroup
	deleter  *deleter
}

func (p *poller) poll(ctx, working context.Context) error {
	for failures := 0; ; {
		free := p.reserve(ctx)
		if free == 0 {
			return nil
		}
		messages, err := p.receive(ctx, free)
		groups := p.group(messages)
		for range free - len(groups) {
			<-p.slots
		}
		if err != nil {
			if _, gone := errors.AsType[*types.QueueDoesNotExist](err); gone {
				return fmt.Errorf("error receiving from %s: %w", p.source.QueueURL, err)
			}
			if ctx.Err() == nil {
				p.consumer.cfg.Logger.WarnContext(ctx, "messages cannot be received", "error", err.Error())
			}
			rest(ctx, failures) // at the end of ctx no time at all
			failures++
			continue
		}
		failures = 0
		if len(groups) > 0 {
			p.start(working, messages, groups)
		}
	}
}

// reserve waits for a free slot and takes all that are free, up to what one request can fill. It
// returns 0 when ctx has ended.
func (p *poller) reserve(ctx context.Context) int {
	if ctx.Err() != nil {
		return 0
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < maxReceive; n++ {
		select {
		case p.slots <- struct{}{}:
		default:
			return n
		}
	}
	return maxReceive
}

func (p *poller) receive(ctx context.Context, most int) ([]*delivery, error) {
	out, err := p.source.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(p.source.QueueURL), MaxNumberOfMessages: int32(most),
		WaitTimeSeconds:   seconds(p.source.Wait),
		VisibilityTimeout: seconds(p.source.Visibility), MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, err
	}
	deliveries := make([]*delivery, len(out.Messages))
	for i := range out.Messages {
		deliveries[i] = &delivery{Message: fromSQS(&out.Messages[i]),
			receipt: aws.ToString(out.Messages[i].ReceiptHandle)}
	}
	return deliveries, nil
}

func (p *poller) group(deliveries []*delivery) [][]int {
	messages := make([]*Message, len(deliveries))
	for i, d := range deliveries {
		messages[i] = d.Message
	}
	return inGroups(messages, p.fifo)
}

// start works on what one request brought: each group in a goroutine, which holds one slot.
func (p *poller) start(working context.Context, deliveries []*delivery, groups [][]int) {
	lease := keepInvisible(working, p.source, deliveries)
	var open sync.WaitGroup
	for _, group := range groups {
		open.Add(1)
		p.running.Go(func() {
			defer open.Done()
			defer func() { <-p.slots }()
			for at, i := range group {
				out := p.consumer.work(deliveries[i].ctx, deliveries[i].Message, p.fifo) //nolint:contextcheck // its context derives from working
				if !out.done {
					lease.giveUp(working, deliveries[i], out.visibleIn)
					for _, k := range group[at+1:] {
						lease.giveUp(working, deliveries[k], max(0, out.visibleIn))
					}
					return
				}
				lease.settle(deliveries[i])
				p.deleter.delete(deliveries[i].receipt)
			}
		})
	}
	p.running.Go(func() {
		open.Wait()
		lease.end()
	})
}

// rest waits before the next request after a failure: exponential, with full jitter.
func rest(ctx context.Context, failures int) {
	timer := time.NewTimer(rand.N(min(maxPollBackoff, 200*time.Millisecond<<min(failures, 6))) + 50*time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// seconds rounds up, since zero would mean something else to SQS.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }
