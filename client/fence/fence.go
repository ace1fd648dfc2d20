package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrStale is the sentinel error that every [*StaleError] matches with errors.Is.
var ErrStale = errors.New("the fence is stale")

// ErrInvalid is returned for a fence that is not positive. Every fence of a lock is positive.
var ErrInvalid = errors.New("the fence is not a positive number")

// StaleError reports that a later holder has already used the resource. The holder whose fence was
// refused has lost its lock, and must stop.
type StaleError struct {
	// Resource is the name of the resource.
	Resource string
	// Fence is the refused fence.
	Fence int64
	// Highest is the highest fence that the resource has seen.
	Highest int64
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %q was used with fence %d after fence %d", ErrStale, e.Resource, e.Fence, e.Highest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Store stores the highest fence of each resource.
type Store interface {
	// Raise atomically replaces the stored fence of the resource with the given fence if the given
	// fence is higher. It returns the fence that is then stored.
	Raise(ctx context.Context, resource string, fence int64) (highest int64, err error)
}

// Guard refuses stale fences. It is safe for concurrent use.
type Guard struct {
	store Store
}

// New returns a Guard. If store is nil, the Guard keeps the fences in the memory of this process,
// and they are lost when the process ends. Use nil only if no other process uses the resource.
func New(store Store) *Guard {
	if store == nil {
		store = &memory{highest: make(map[string]int64)}
	}
	return &Guard{store: store}
}

// Check returns nil if the holder with this fence may use the resource, and a [*StaleError] if a
// later holder has used it. A holder may use the resource any number of times.
//
// A later holder may use the resource between the check and the use: do both in one critical
// section or transaction. Errors: [ErrStale], [ErrInvalid], or the error of the [Store].
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

// memory is a Store in memory. It keeps an entry for every resource that was ever checked.
type memory struct {
	mu      sync.Mutex
	highest map[string]int64
}

// Raise implements Store.
func (m *memory) Raise(_ context.Context, resource string, fence int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.highest[resource] = max(m.highest[resource], fence)
	return m.highest[resource], nil
}
