// Package fence guards a resource against a holder that no longer holds its lock.
//
// A lease cannot stop a process that was paused: it wakes up, believes in its lock, and writes. The
// resource can: every lock comes with a fence, a number that rises from holder to holder, and the
// resource remembers the highest that it has seen and refuses a lower one (Kleppmann, "How to do
// distributed locking", 2016).
//
// A resource in a database keeps the fence in the row itself and checks it in the very statement
// that writes:
//
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// No row changed means that the fence is stale. Where the resource is a process, [Guard] does the
// same in memory, or in a [Store] of one's own.
//
// Fences order exclusive holders. Those of shared holders and of semaphores differ from each other
// too, but their holders are meant to work side by side: do not guard what they share.
package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrStale matches a [*StaleError].
var ErrStale = errors.New("the fence is stale")

// ErrInvalid says that a fence is not a positive number, which every fence of a lock is.
var ErrInvalid = errors.New("the fence is not a positive number")

// StaleError says that a later holder has been seen: the one with Fence lost its lock, and must not
// go on.
type StaleError struct {
	Resource string
	Fence    int64
	Highest  int64
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %q was used with %d, and has seen %d", ErrStale, e.Resource, e.Fence, e.Highest)
}

// Is matches [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Store remembers the highest fence of each resource.
type Store interface {
	// Raise remembers fence for the resource unless it has a higher one, atomically, and returns
	// the highest after that.
	Raise(ctx context.Context, resource string, fence int64) (highest int64, err error)
}

// Guard refuses stale fences. It is safe for concurrent use.
type Guard struct {
	store Store
}

// New makes a Guard. A nil store remembers in memory: enough where one process is the only way to
// the resource, for as long as it lives.
func New(store Store) *Guard {
	if store == nil {
		store = &memory{highest: make(map[string]int64)}
	}
	return &Guard{store: store}
}

// Check lets a holder with this fence work on the resource, or returns a [*StaleError]. The same
// fence passes any number of times.
//
// Between the check and the work a later holder may come: check within the same critical section,
// or transaction, as the work.
func (g *Guard) Check(ctx context.Context, resource string, fence int64) error {
	if fence <= 0 {
		return ErrInvalid
	}
	highest, err := g.store.Raise(ctx, resource, fence)
	switch {
	case err != nil:
		return fmt.Errorf("error checking the fence of %q: %w", resource, err)
	case highest > fence:
		return &StaleError{Resource: resource, Fence: fence, Highest: highest}
	}
	return nil
}

// memory is a Store of one process. It has an entry for each resource that was ever checked.
type memory struct {
	mu      sync.Mutex
	highest map[string]int64
}

func (m *memory) Raise(_ context.Context, resource string, fence int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.highest[resource] = max(m.highest[resource], fence)
	return m.highest[resource], nil
}
