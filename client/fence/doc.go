// Package fence protects a resource from a process that no longer holds its lock.
//
// A lease cannot stop a process that was paused: it continues, still believes that it holds the
// lock, and writes. The resource can stop it. Every lock comes with a fencing token, the fence,
// which increases from holder to holder. The resource stores the highest fence that it has seen,
// and refuses a lower one (Kleppmann, "How to do distributed locking", 2016).
//
// A resource in a database stores the fence in its row, and checks it in the statement that writes:
//
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// If no row was changed, the fence is stale. If the resource is a process, [Guard] does the same in
// memory or in a [Store].
//
// Fences order exclusive holders. Shared holders and the holders of a semaphore have distinct
// fences too, but work concurrently: do not guard what they share.
//
// # Stability
//
// The package is part of the module github.com/sluicehq/sluice/client. Before v1.0.0, a minor
// version may change it incompatibly; a patch version does not.
package fence
