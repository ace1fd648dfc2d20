// Package consumer handles the jobs that Sluice sends to an SQS queue: in a Lambda function that
// the queue triggers, or in a loop in a container.
//
//	handle := func(ctx context.Context, m *consumer.Message) error {
//		var order Order
//		if err := m.Decode(&order); err != nil {
//			return err
//		}
//		return ship(ctx, order)
//	}
//	c, err := consumer.New(consumer.Config{Client: api, Handle: handle})
//	...
//	lambda.Start(c.Lambda)                                                // as a Lambda function
//	err = c.Run(ctx, consumer.Source{SQS: sqsClient, QueueURL: queueURL}) // in a container
//
// # Results
//
// If the handler returns nil, the consumer acknowledges the job. If it returns an error or panics,
// the consumer rejects the job, and Sluice schedules the next attempt. In both cases the message is
// deleted from SQS.
//
// Sluice treats a job with one attempt (max_attempts 1, the default of a push) as finished when SQS
// accepts it. If its handler fails, the message stays in SQS. SQS delivers it again, or moves it to
// the dead-letter queue that is configured in SQS.
//
// In a FIFO queue, the consumer never rejects a job. A failed message stays in SQS, because only
// SQS can hold back the rest of the message group. After the first failure in a group, the consumer
// returns the later messages of the group to SQS without handling them.
//
// # Delivery
//
// Delivery is at least once: a handler must tolerate a second call for the same [Message.JobID].
//
// The acknowledgement timeout of a job (ack_timeout_ms) covers one attempt from its acceptance by
// SQS to its acknowledgement, including the time in the queue. After this time, Sluice sends the
// next attempt, even if a handler is still working on the current attempt. The timeout cannot be
// extended: it must exceed the longest time in the queue plus the longest run of the handler.
// [Consumer.Run] extends only the visibility timeout of the message.
//
// # Stability
//
// The package is part of the module github.com/sluicehq/sluice/client. Before v1.0.0, a minor
// version may contain incompatible changes; a patch version does not.
package consumer
