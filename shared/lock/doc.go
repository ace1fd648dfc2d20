// Package lock provides distributed locks with fencing tokens: exclusive locks, shared (reader)
// locks and semaphores.
//
// A lock is a lease: it ends after its TTL unless the holder renews it. A lease alone does not
// protect data, because a paused holder may write after its lease has ended (Kleppmann, "How to do
// distributed locking", 2016). So each lease has a fence, a number that is higher than the fence of
// every earlier holder. The protected resource stores the highest fence that it has seen and
// refuses a write with a lower fence.
//
// # Usage
//
// [FromClient] returns a store that uses your Redis client:
//
//	locks := lock.FromClient(client) // a redis.UniversalClient
//	defer locks.Close()
//
//	lease, err := locks.Acquire(ctx, lock.Request{Name: "report", TTL: time.Minute})
//	if errors.Is(err, lock.ErrHeld) {
//		return // lock.HolderOf(err) returns the owner of the lock
//	}
//	if err != nil {
//		return
//	}
//	defer locks.Release(context.WithoutCancel(ctx), lease.Key, lease.Token)
//	write(lease.Fence)
//
// Every method fills in the defaults of its arguments. It returns a [fault.InvalidRequest] error if
// an argument is invalid, and a [fault.StoreUnavailable] error if the store is unreachable. After a
// [fault.StoreUnavailable] error, the call may or may not have taken effect. A caller can safely
// repeat the call with the same token. To repeat an Acquire, set the Token of its [Request].
//
// # Stores
//
//   - [Redis] keeps locks on one Redis deployment. Waiters are served in order of arrival.
//   - [Quorum] keeps a lock on a majority of independent Redis primaries.
//   - Package dynamolock keeps locks in a DynamoDB table.
//
// # Stability
//
// Before version 1.0, a minor version may change the API of this package. The HTTP API of Sluice is
// stable.
package lock
