// Package fence protects a resource from a process that no longer holds its lock.
//
// A lease cannot stop a process that was paused for longer than the lease. When the process
// continues, it writes as if it still held the lock. The resource can refuse this write. Every lock
// has a fencing token, the fence, which is higher for each later holder. The resource stores the
// highest fence that it has seen, and refuses lower fences (Kleppmann, "How to do distributed
// locking", 2016).
//
// A resource in a database stores the fence in its row, and checks it in the statement that writes:
//
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// If no row was changed, the fence is stale. If the resource is a process, it can use a [Guard],
// which stores and checks the fence in memory or in a [Store].
//
// Use a Guard only with exclusive locks. Shared holders and holders of a semaphore work
// concurrently, each with its own fence: a Guard would refuse all but the latest holder.
//
// # Stability
//
// The package is part of the module github.com/sluicehq/sluice/client. Before v1.0.0, a minor
// version may contain incompatible changes; a patch version does not.
package fence
