package consumer

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	maxDelete = 10 // messages of one request, by SQS
	// deleteDelay is how long a message waits for others to be deleted with.
	deleteDelay   = 50 * time.Millisecond
	deleteTimeout = 10 * time.Second
	deleteTries   = 3
)

// deleter deletes messages in as few requests as it can.
type deleter struct {
	source   Source
	log      *slog.Logger
	receipts chan string
	finished chan struct{}
}

// newDeleter starts a deleter, which ctx must not end before its close.
func newDeleter(ctx context.Context, s Source, log *slog.Logger) *deleter {
	d := &deleter{source: s, log: log, receipts: make(chan string, maxDelete), finished: make(chan struct{})}
	go d.run(ctx)
	return d
}

func (d *deleter) delete(receipt string) { d.receipts <- receipt }

// close deletes what is left and returns after that.
func (d *deleter) close() {
	close(d.receipts)
	<-d.finished
}

func (d *deleter) run(ctx context.Context) {
	defer close(d.finished)
	for first := range d.receipts {
		batch := []string{first}
		timer := time.NewTimer(deleteDelay)
		for open := true; open && len(batch) < maxDelete; {
			select {
			case next, ok := <-d.receipts:
				if open = ok; ok {
					batch = append(batch, next)
				}
			case <-timer.C:
				open = false
			}
		}
		timer.Stop()
		d.deleteAll(ctx, batch)
	}
}

// deleteAll deletes, and repeats what SQS did not do. A message that stays is delivered again.
func (d *deleter) deleteAll(ctx context.Context, receipts []string) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	why := ""
	for range deleteTries {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(receipts))
		for i, receipt := range receipts {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)),
				ReceiptHandle: aws.String(receipt)}
		}
		out, err := d.source.SQS.DeleteMessageBatch(ctx,
			&sqs.DeleteMessageBatchInput{QueueUrl: aws.String(d.source.QueueURL), Entries: entries})
		if err != nil {
			why = err.Error()
			continue
		}
		var again []string
		for _, entry := range out.Failed {
			if i, err := strconv.Atoi(aws.ToString(entry.Id)); err == nil && i < len(receipts) {
				again, why = append(again, receipts[i]), aws.ToString(entry.Message)
			}
		}
		if receipts = again; len(receipts) == 0 {
			return
		}
	}
	d.log.ErrorContext(ctx, "messages cannot be deleted; they will be delivered again", "count", len(receipts), "error",
		why)
}
