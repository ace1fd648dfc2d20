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

const (
	maxReceive     = 10 // messages in one request, a limit of SQS
	maxPollBackoff = 10 * time.Second
)

// Run receives messages and handles them until ctx ends.
//
// After ctx has ended, Run receives no more messages. Running handlers may continue for
// [Source.StopTimeout]; then their contexts end with [ErrStopping]. Run returns nil when the last
// handler has returned. Messages that were not handled become visible to other consumers
// immediately.
//
// Run returns an error if the Source is invalid or the queue does not exist. After any other
// failure of SQS, it retries with a backoff of up to 10 s.
func (c *Consumer) Run(ctx context.Context, s Source) error {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return err
	}

	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	p := &poller{
		consumer: c,
		source:   s,
		fifo:     strings.HasSuffix(s.QueueURL, ".fifo"),
		slots:    make(chan struct{}, c.cfg.Concurrency),
		deleter:  newDeleter(context.WithoutCancel(ctx), s, c.cfg.Logger),
	}
	err := p.poll(ctx, working)

	timeout := time.AfterFunc(s.StopTimeout, func() { end(ErrStopping) })
	p.running.Wait()
	timeout.Stop()
	p.deleter.close()
	return err
}

// poller is one call of Run.
type poller struct {
	consumer *Consumer
	source   Source
	fifo     bool
	slots    chan struct{} // holds an element for each slot in use
	running  sync.WaitGroup
	deleter  *deleter
}

// poll receives messages until ctx ends. The contexts of the handlers derive from the context
// working.
func (p *poller) poll(ctx, working context.Context) error {
	for failures := 0; ; {
		reserved := p.reserve(ctx)
		if reserved == 0 {
			return nil
		}
		deliveries, err := p.receive(ctx, reserved)
		groups := p.group(deliveries)
		p.free(reserved - len(groups))

		if err == nil {
			failures = 0
			if len(groups) > 0 {
				p.start(working, deliveries, groups)
			}
			continue
		}
		if _, missing := errors.AsType[*types.QueueDoesNotExist](err); missing {
			return fmt.Errorf("error receiving from %s: %w", p.source.QueueURL, err)
		}
		if ctx.Err() == nil {
			p.consumer.cfg.Logger.WarnContext(ctx, "messages cannot be received", "error", err.Error())
		}
		pollBackoff(ctx, failures)
		failures++
	}
}

// reserve waits for a free slot, takes up to maxReceive free slots and returns their number. It
// returns 0 if ctx ends.
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

func (p *poller) free(slots int) {
	for range slots {
		<-p.slots
	}
}

func (p *poller) receive(ctx context.Context, limit int) ([]*delivery, error) {
	out, err := p.source.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:              aws.String(p.source.QueueURL),
		MaxNumberOfMessages:   int32(limit),
		WaitTimeSeconds:       seconds(p.source.Wait),
		VisibilityTimeout:     seconds(p.source.Visibility),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, err
	}

	deliveries := make([]*delivery, len(out.Messages))
	for i := range out.Messages {
		m := &out.Messages[i]
		deliveries[i] = &delivery{Message: fromSQS(m), receipt: aws.ToString(m.ReceiptHandle)}
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

// start handles the messages of one request. Each group has a goroutine and a slot.
func (p *poller) start(working context.Context, deliveries []*delivery, groups [][]int) {
	visibility := newExtender(working, p.source, deliveries)
	var open sync.WaitGroup
	for _, group := range groups {
		open.Add(1)
		p.running.Go(func() {
			defer open.Done()
			defer p.free(1)
			p.workOn(working, visibility, pick(deliveries, group))
		})
	}
	p.running.Go(func() {
		open.Wait()
		visibility.close()
	})
}

func pick(deliveries []*delivery, indices []int) []*delivery {
	out := make([]*delivery, len(indices))
	for i, index := range indices {
		out[i] = deliveries[index]
	}
	return out
}

// workOn handles a group in order. After a failure it releases the rest of the group.
func (p *poller) workOn(working context.Context, visibility *extender, group []*delivery) {
	for i, d := range group {
		out := p.consumer.work(d.ctx, d.Message, p.fifo) //nolint:contextcheck // derives from working
		if !out.done {
			visibility.release(working, d, out.visibleIn)
			for _, later := range group[i+1:] {
				visibility.release(working, later, max(0, out.visibleIn))
			}
			return
		}
		visibility.finish(d)
		p.deleter.delete(d.receipt)
	}
}

// pollBackoff waits after a failed request, with exponential backoff and full jitter. It returns
// immediately if ctx ends.
func pollBackoff(ctx context.Context, failures int) {
	most := min(maxPollBackoff, 200*time.Millisecond<<min(failures, 6))
	timer := time.NewTimer(rand.N(most) + 50*time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// seconds converts d to whole seconds. It rounds up, because 0 has a special meaning for SQS: no
// wait, or immediate visibility.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }
