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

// maxVisibility is the longest visibility timeout that SQS accepts.
const maxVisibility = 12 * time.Hour

// delivery is a message with its receipt and the state of its visibility timeout.
type delivery struct {
	*Message

	receipt  string
	ctx      context.Context // of the handler; ends with [ErrVisibilityLost] at the timeout
	cancel   context.CancelCauseFunc
	expiry   *time.Timer
	finished bool
}

// extender keeps the messages of one receive request invisible while they are handled or wait for
// an earlier message of their group.
type extender struct {
	source     Source
	deliveries []*delivery
	stop       context.CancelFunc
	stopped    chan struct{}

	mu sync.Mutex // guards delivery.finished
}

// newExtender gives each delivery its context, and extends the visibility timeouts until close.
func newExtender(working context.Context, s Source, deliveries []*delivery) *extender {
	e := &extender{source: s, deliveries: deliveries, stopped: make(chan struct{})}
	for _, d := range deliveries {
		d.ctx, d.cancel = context.WithCancelCause(working)
		d.expiry = time.AfterFunc(s.Visibility, func() { d.cancel(ErrVisibilityLost) })
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(working))
	e.stop = stop
	go e.run(ctx)
	return e
}

// run extends the timeouts after each third of Visibility, so that a failed request can be repeated
// before the messages become visible.
func (e *extender) run(ctx context.Context) {
	defer close(e.stopped)
	ticker := time.NewTicker(e.source.Visibility / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.extend(ctx)
		}
	}
}

func (e *extender) extend(ctx context.Context) {
	started := time.Now()
	pending := e.pending()
	for i, ok := range e.change(ctx, e.source.Visibility, pending) {
		e.mu.Lock()
		if ok && !pending[i].finished {
			pending[i].expiry.Reset(time.Until(started.Add(e.source.Visibility)))
		}
		e.mu.Unlock()
	}
}

// pending returns the deliveries whose timeout must be extended.
func (e *extender) pending() []*delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*delivery
	for _, d := range e.deliveries {
		if !d.finished && d.ctx.Err() == nil {
			out = append(out, d)
		}
	}
	return out
}

// change sets the visibility timeouts, measured from now. It reports for each delivery whether SQS
// has accepted the change.
func (e *extender) change(ctx context.Context, visibility time.Duration, deliveries []*delivery) []bool {
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
	ctx, cancel := context.WithTimeout(ctx, max(e.source.Visibility/4, time.Second))
	defer cancel()
	out, err := e.source.SQS.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: aws.String(e.source.QueueURL), Entries: entries,
	})
	if err != nil {
		return accepted // the next tick retries, until the timeout has passed
	}

	for _, entry := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(entry.Id)); err == nil && i < len(accepted) {
			accepted[i] = true
		}
	}
	return accepted
}

// finish stops the extensions of a delivery, and ends the handler's context.
func (e *extender) finish(d *delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d.finished = true
	d.expiry.Stop()
	d.cancel(nil)
}

// release finishes a delivery, and makes its message visible to other consumers after visibleIn. A
// negative duration keeps the visibility timeout.
func (e *extender) release(ctx context.Context, d *delivery, visibleIn time.Duration) {
	e.finish(d)
	if visibleIn >= 0 {
		e.change(context.WithoutCancel(ctx), min(visibleIn, maxVisibility), []*delivery{d})
	}
}

// close stops the extensions. When it returns, no request is running.
func (e *extender) close() {
	e.stop()
	<-e.stopped
}
