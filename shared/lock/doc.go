// Package lock provides distributed locks with fencing tokens: exclusive locks, shared (reader)
// locks and semaphores.
//
// A lock is a lease: it ends after its TTL unless the holder renews it. A lease alone cannot
// protect data from a holder that was paused past its end (Kleppmann, "How to do distributed
// locking",
// 2016). The fence can: it rises from holder to holder, and the protected resource refuses a write
// that carries a lower fence than one it has seen.
//
// # Usage
//
// [FromClient] builds a store on a Redis client of your own:
//
//	locks := lock.FromClient(client) // a redis.UniversalClient
//	defer locks.Close()
//
//	lease, err := locks.Acquire(ctx, lock.Request{Name: "report", TTL: time.Minute})
//	if errors.Is(err, lock.ErrHeld) {
//		return // another holder has it; lock.HolderOf(err) names the owner
//	}
//	if err != nil {
//		return
//	}
//	defer locks.Release(context.WithoutCancel(ctx), lease.Key, lease.Token)
//	write(lease.Fence)
//
// Every method fills in the defaults of its arguments and refuses invalid ones with a
// [fault.InvalidRequest] error. An unreachable store is a [fault.StoreUnavailable] error; after it
// the call may or may not have taken effect. Repeating it with the same token is safe, so a caller
// that repeats an Acquire sets the Token of its [Request].
//
// # Stores
//
//   - [Redis] keeps locks on one Redis deployment. Waiters are served in order of arrival.
//   - [Quorum] keeps a lock on a majority of independent Redis primaries.
//   - Package dynamolock keeps locks in a DynamoDB table.
//
// # Stability
//
// Before version 1.0 this package may change in a minor version. The HTTP API of Sluice is the
// stable surface.
package lock
