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
	maxDelete = 10 // messages in one request, a limit of SQS
	// deleteDelay is the time that a request waits for further messages.
	deleteDelay    = 50 * time.Millisecond
	deleteTimeout  = 10 * time.Second
	deleteAttempts = 3
)

// deleter deletes messages from SQS, several in one request.
type deleter struct {
	source   Source
	log      *slog.Logger
	receipts chan string
	finished chan struct{}
}

// newDeleter starts a deleter. Its requests use ctx, which must not end before the method close
// returns.
func newDeleter(ctx context.Context, s Source, log *slog.Logger) *deleter {
	d := &deleter{source: s, log: log, receipts: make(chan string, maxDelete), finished: make(chan struct{})}
	go d.run(ctx)
	return d
}

func (d *deleter) delete(receipt string) { d.receipts <- receipt }

// close deletes the remaining messages, and then returns.
func (d *deleter) close() {
	close(d.receipts)
	<-d.finished
}

func (d *deleter) run(ctx context.Context) {
	defer close(d.finished)
	for first := range d.receipts {
		d.deleteAll(ctx, d.collect(first))
	}
}

// collect returns the given receipt and the receipts that arrive within deleteDelay, up to
// maxDelete in total.
func (d *deleter) collect(first string) []string {
	batch := []string{first}
	timer := time.NewTimer(deleteDelay)
	defer timer.Stop()
	for len(batch) < maxDelete {
		select {
		case next, ok := <-d.receipts:
			if !ok {
				return batch
			}
			batch = append(batch, next)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// deleteAll deletes messages. If SQS does not delete some of them, it repeats the request for
// these, up to deleteAttempts requests in total. SQS delivers a message that was not deleted again.
func (d *deleter) deleteAll(ctx context.Context, receipts []string) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()

	reason := ""
	for range deleteAttempts {
		out, err := d.source.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: aws.String(d.source.QueueURL), Entries: deleteEntries(receipts),
		})
		if err != nil {
			reason = err.Error()
			continue
		}

		var failed []string
		for _, entry := range out.Failed {
			if i, err := strconv.Atoi(aws.ToString(entry.Id)); err == nil && i < len(receipts) {
				failed, reason = append(failed, receipts[i]), aws.ToString(entry.Message)
			}
		}
		if receipts = failed; len(receipts) == 0 {
			return
		}
	}
	d.log.ErrorContext(ctx, "messages cannot be deleted; SQS will deliver them again",
		"count", len(receipts), "error", reason)
}

// deleteEntries returns entries whose ID is the index of the receipt.
func deleteEntries(receipts []string) []types.DeleteMessageBatchRequestEntry {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(receipts))
	for i, receipt := range receipts {
		entries[i] = types.DeleteMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(receipt),
		}
	}
	return entries
}
