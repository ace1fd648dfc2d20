// Package consumer works on the jobs that Sluice sends to an SQS queue: as a Lambda function behind
// the queue, or as a loop in a container.
//
//	c, err := consumer.New(consumer.Config{Client: sluice, Handle: func(ctx context.Context, m *consumer.Message) error {
//		var order Order
//		if err := m.Decode(&order); err != nil {
//			return err
//		}
//		return ship(ctx, order)
//	}})
//	lambda.Start(c.Lambda)                                                    // either
//	err = c.Run(ctx, consumer.Source{SQS: sqsClient, QueueURL: queueURL})     // or
//
// A handler that returns nil acks its job and one that returns an error, or panics, nacks it:
// Sluice then schedules the next attempt, and the message leaves SQS either way. A job of one
// attempt (max_attempts 1, the default of a push) needs no ack and has no next attempt of Sluice's:
// its message stays in SQS after a failure, whose redelivery and dead-letter queue then apply.
//
// On a FIFO queue every failure is left to SQS, because only SQS can keep the rest of the group
// waiting: the first failure of a group ends the work on that group, and its later messages are
// given back untouched.
//
// Delivery is at least once. What a handler does must bear being done twice for one
// [Message.JobID].
//
// An attempt has the job's ack_timeout_ms from its acceptance by SQS until the ack, the time in the
// queue included; after that Sluice sends the next attempt, whether or not this one is still being
// worked on. Nothing here can extend it: choose it longer than the longest time in the queue and in
// the handler. What is extended, in the loop, is the message's invisibility in SQS.
package consumer
