// Package delayqueue keeps jobs in Redis until they are due, and hands each of them to a dispatcher
// under a lease.
//
// A job is in exactly one of five places: due, leased, awaiting its acknowledgement, dead or done.
// Every move from one to another is a single script, so of two concurrent moves one wins. The clock
// is Redis': no job is claimed before it is due by that clock.
//
// # Usage
//
// [FromClient] makes [Queues] from a Redis client of your own:
//
//	queues, err := delayqueue.FromClient(client, delayqueue.Config{}) // a redis.UniversalClient
//
//	job := delayqueue.Job{ID: "remind-7", Payload: []byte(`{"order":7}`), Delay: 15 * time.Minute}
//	enqueued, err := queues.Push(ctx, "orders", job)
//	if err == nil && enqueued.Duplicate {
//		// The ID exists already, and nothing was enqueued.
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
// A job with MaxAttempts over 1 then waits for [Queues.Ack] or [Queues.Nack]. A dispatcher calls
// [Queues.Maintain] about once a second: it reschedules jobs whose lease or acknowledgement is
// overdue, and removes finished ones.
//
// Every method normalizes its arguments and refuses invalid ones with [ErrInvalid], which lists the
// fields by their names in the HTTP API. Other errors are [ErrPayloadTooLarge], [ErrNotFound],
// [ErrConflict] and [ErrUnavailable].
//
// # Delivery
//
// A job is delivered at least once: if a dispatcher crashes between a delivery and Accept, the same
// attempt is claimed again. Consumers must be idempotent by the ID of the job.
//
// # Packages
//
// Package sqssender delivers claimed jobs to SQS, package outbox stores jobs in DynamoDB while
// Redis is unavailable, and package jobs combines both stores.
//
// # Stability
//
// Before version 1.0 this package may change in a minor version. The HTTP API of Sluice is the
// stable surface.
package delayqueue
