package consumer

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// delivery is a message with what SQS needs to know it by.
type delivery struct {
	*Message
	receipt string
	ctx     context.Context // ends with [ErrVisibilityLost]
	cancel  context.CancelCauseFunc
	expiry  *time.Timer
	settled bool
}

// lease keeps the messages of one request invisible while they are being worked on, or wait behind
// one of their group.
type lease struct {
	source     Source
	deliveries []*delivery
	stop       context.CancelFunc
	stopped    chan struct{}

	mu sync.Mutex
}

// keepInvisible gives each delivery its context, and extends their invisibility until end.
func keepInvisible(working context.Context, s Source, deliveries []*delivery) *lease {
	l := &lease{source: s, deliveries: deliveries, stopped: make(chan struct{})}
	for _, d := range deliveries {
		d.ctx, d.cancel = context.WithCancelCause(working)
		d.expiry = time.AfterFunc(s.Visibility, func() { d.cancel(ErrVisibilityLost) })
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(working))
	l.stop = stop
	go l.extend(ctx)
	return l
}

// extend extends each third of the visibility, so that two requests may fail.
func (l *lease) extend(ctx context.Context) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.source.Visibility / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		started := time.Now()
		pending := l.pending()
		for i, ok := range l.change(ctx, l.source.Visibility, pending) {
			l.mu.Lock()
			if ok && !pending[i].settled {
				pending[i].expiry.Reset(time.Until(started.Add(l.source.Visibility)))
			}
			l.mu.Unlock()
		}
	}
}

func (l *lease) pending() []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*delivery
	for _, d := range l.deliveries {
		if !d.settled && d.ctx.Err() == nil {
			out = append(out, d)
		}
	}
	return out
}

// change sets the invisibility from now on, and tells of which deliveries SQS has accepted that.
func (l *lease) change(ctx context.Context, visibility time.Duration, deliveries []*delivery) []bool {
	accepted := make([]bool, len(deliveries))
	if len(deliveries) == 0 {
		return accepted
	}
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(deliveries))
	for i, d := range deliveries {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(d.receipt),
			VisibilityTimeout: seconds(visibility),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, max(l.source.Visibility/4, time.Second))
	defer cancel()
	out, err := l.source.SQS.ChangeMessageVisibilityBatch(ctx,
		&sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(l.source.QueueURL), Entries: entries})
	if err != nil {
		return accepted // it is tried again at the next tick, until the visibility is over
	}
	for _, entry := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(entry.Id)); err == nil && i < len(accepted) {
			accepted[i] = true
		}
	}
	return accepted
}

// settle ends a delivery's lease; it is extended no more.
func (l *lease) settle(d *delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.settled = true
	d.expiry.Stop()
	d.cancel(nil)
}

// giveUp ends a delivery's lease, and lets others see the message after visibleIn; when that is
// negative, SQS decides.
func (l *lease) giveUp(ctx context.Context, d *delivery, visibleIn time.Duration) {
	l.settle(d)
	if visibleIn >= 0 {
		l.change(context.WithoutCancel(ctx), min(visibleIn, 12*time.Hour), []*delivery{d})
	}
}

// end returns when nothing is extended any more.
func (l *lease) end() {
	l.stop()
	<-l.stopped
}
