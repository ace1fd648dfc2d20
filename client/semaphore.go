package client

import (
	"context"
)

// Semaphore lets up to a number of holders in at once. Semaphores and locks never meet, even under
// one name.
type Semaphore struct {
	client *Client
	target target
}

// Semaphore names a semaphore with capacity permits, 1 to 10 000. The capacity is each caller's
// own: it is compared with the permits in use.
func (c *Client) Semaphore(name string, capacity int) *Semaphore {
	return &Semaphore{client: c, target: target{kind: semaphores, name: name, capacity: capacity}}
}

// Acquire takes a permit, as [Client.Lock] takes a lock.
func (s *Semaphore) Acquire(ctx context.Context, o LockOptions) (*Lock, error) {
	return s.acquire(ctx, o, false)
}

// TryAcquire takes a permit without waiting.
func (s *Semaphore) TryAcquire(ctx context.Context, o LockOptions) (*Lock, error) {
	return s.acquire(ctx, o, true)
}

func (s *Semaphore) acquire(ctx context.Context, o LockOptions, try bool) (*Lock, error) {
	op := "acquiring " + s.target.String()
	var f fields
	if s.target.capacity < 1 {
		f.add("capacity", "must be 1 to 10000")
	}
	if o.Mode != "" {
		f.add("mode", "is for locks: a semaphore has none")
	}
	if err := f.err(op); err != nil {
		return nil, err
	}
	return s.client.acquire(ctx, s.target, o, try)
}

// Resume takes over the permit that token holds, as [Client.Resume] does with a lock.
func (s *Semaphore) Resume(ctx context.Context, token string, o LockOptions) (*Lock, error) {
	return s.client.resume(ctx, s.target, token, o)
}

// ReleaseToken gives back the permit that token holds.
func (s *Semaphore) ReleaseToken(ctx context.Context, token string) error {
	if err := s.target.check("releasing " + s.target.String()); err != nil {
		return err
	}
	return s.client.release(ctx, s.target, LockOptions{Token: token})
}

// Inspect reads who holds permits.
func (s *Semaphore) Inspect(ctx context.Context) (LockState, error) {
	return s.client.inspect(ctx, s.target, "")
}

// ForceRelease takes every permit back, and returns how many were in use.
func (s *Semaphore) ForceRelease(ctx context.Context) (int, error) {
	return s.client.force(ctx, s.target, "")
}
