// Package delayqueue keeps jobs in Redis until they are due. A dispatcher then claims each job
// under a lease.
//
// A job is in exactly one of five places: due, leased, awaiting its acknowledgement, dead or done.
// A single script makes each move between two places, so exactly one of two concurrent moves of a
// job succeeds. A job is due when Redis' clock reaches its due time, and is never claimed before
// then.
//
// # Usage
//
// [FromClient] returns [Queues] that use your Redis client:
//
//	queues, err := delayqueue.FromClient(client, delayqueue.Config{}) // a redis.UniversalClient
//
//	job := delayqueue.Job{ID: "remind-7", Payload: []byte(`{"order":7}`), Delay: 15 * time.Minute}
//	enqueued, err := queues.Push(ctx, "orders", job)
//	if err == nil && enqueued.Duplicate {
//		// A job with this ID already exists; nothing was enqueued.
//	}
//
// A dispatcher serves every shard of a queue. It claims due jobs, delivers them, and then reports
// the outcome:
//
//	claims, err := queues.Claim(ctx, "orders", shard, 100, 30*time.Second)
//	for _, job := range claims.Jobs {
//		deliver(job)
//	}
//	lost, err := queues.Accept(ctx, "orders", shard, claims.Jobs) // or Requeue
//
// A job with more than one attempt then waits for [Queues.Ack] or [Queues.Nack]. A dispatcher calls
// [Queues.Maintain] about once a second. Maintain reschedules jobs whose lease has lapsed or whose
// acknowledgement is overdue, and removes finished jobs after the dedup window.
//
// Every method normalizes its arguments and rejects invalid arguments with [ErrInvalid], which
// lists the invalid fields by their names in the HTTP API. Other errors are [ErrPayloadTooLarge],
// [ErrNotFound], [ErrConflict] and [ErrUnavailable].
//
// # Delivery
//
// A job is delivered at least once: if a dispatcher crashes between a delivery and Accept, the same
// attempt is claimed again. Consumers must therefore deduplicate by job ID.
//
// # Packages
//
// Package sqssender delivers claimed jobs to SQS, package outbox stores jobs in DynamoDB while
// Redis is unavailable, and package jobs combines both stores.
//
// # Stability
//
// Before version 1.0 this package may change in a minor version. Only the HTTP API of Sluice is
// stable.
package delayqueue
