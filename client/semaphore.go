package client

import "context"

// Semaphore is a handle for a semaphore, which grants a limited number of permits. A semaphore and
// a lock of the same name are independent. A Semaphore is safe for concurrent use.
type Semaphore struct {
	client *Client
	target target
}

// Semaphore returns a handle for a semaphore that grants up to capacity permits at a time. The
// capacity is 1 to 10,000. The API does not store it: each acquire compares its own capacity with
// the number of permits in use.
func (c *Client) Semaphore(name string, capacity int) *Semaphore {
	return &Semaphore{client: c, target: target{kind: semaphores, name: name, capacity: capacity}}
}

// Acquire acquires a permit, and waits for it as [Client.Lock] does for a lock.
func (s *Semaphore) Acquire(ctx context.Context, o LockOptions) (*Lock, error) {
	return s.acquire(ctx, o, false)
}

// TryAcquire acquires a permit without waiting, as [Client.TryLock] does for a lock.
func (s *Semaphore) TryAcquire(ctx context.Context, o LockOptions) (*Lock, error) {
	return s.acquire(ctx, o, true)
}

func (s *Semaphore) acquire(ctx context.Context, o LockOptions, try bool) (*Lock, error) {
	var f fields
	if s.target.capacity < 1 {
		f.add("capacity", "must be 1 to 10000")
	}
	if o.Mode != "" {
		f.add("mode", "must be empty: a semaphore has no mode")
	}
	if err := f.err("acquiring " + s.target.String()); err != nil {
		return nil, err
	}
	return s.client.acquire(ctx, s.target, o, try)
}

// Resume takes over the permit of a token, as [Client.Resume] does for a lock.
func (s *Semaphore) Resume(ctx context.Context, token string, o LockOptions) (*Lock, error) {
	return s.client.resume(ctx, s.target, token, o)
}

// ReleaseToken releases the permit of a token. Errors: [ErrLockNotHeld].
func (s *Semaphore) ReleaseToken(ctx context.Context, token string) error {
	if err := s.target.check("releasing " + s.target.String()); err != nil {
		return err
	}
	return s.client.release(ctx, s.target, LockOptions{Token: token})
}

// Inspect reads the holders of the semaphore.
func (s *Semaphore) Inspect(ctx context.Context) (LockState, error) {
	return s.client.inspect(ctx, s.target, "")
}

// ForceRelease releases every permit, and returns the number of released permits. See
// [Client.ForceRelease].
func (s *Semaphore) ForceRelease(ctx context.Context) (int, error) {
	return s.client.force(ctx, s.target, "")
}
