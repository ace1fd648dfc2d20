// Package dynamolock keeps locks in a DynamoDB table, one item for each lock. Every operation is a
// consistent read, followed by a conditional write that fails if the item has changed. DynamoDB
// acknowledges a write after the write is durable in three availability zones, so a failover loses
// no lease.
//
// The process that grants a lease sets the lease's end by its own clock. A process that reads the
// lease compares the end with its own clock. The two clocks may differ, so a lease excludes other
// holders until [Margin] after its end, although its holder stops at the end. The margin must
// exceed the difference between the clocks; AWS keeps the clocks of its hosts within milliseconds
// (Amazon Time Sync). If two clocks differ by more than the margin, the leases of two holders may
// overlap, for at most the difference minus the margin. The fence rises regardless of the clocks.
//
// Before version 1.0, a minor version may change the API of this package.
package dynamolock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/shared/lock"
)

const (
	// Margin is the time after the end of a lease during which no other holder is granted the lock.
	Margin = 500 * time.Millisecond
	// callTimeout bounds one operation. With the clean-up, an operation fails within 500 ms if
	// DynamoDB is unavailable.
	callTimeout = 350 * time.Millisecond
	// cleanupTimeout bounds the clean-up after a failed Acquire.
	cleanupTimeout = 100 * time.Millisecond
	// pollInterval is the longest pause between two attempts of a waiter.
	pollInterval = 250 * time.Millisecond
)

// Store keeps locks in one table. Waiters poll and are served in no particular order. Store does
// not support semaphores. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New returns a Store that uses an existing table with the schema of [TableInput].
func New(client *dynamodb.Client, table string) *Store {
	return &Store{client: client, table: table, now: time.Now}
}

// Acquire acquires a lock. If it is held, Acquire waits up to req.Wait. If the call fails, Acquire
// removes any lease that DynamoDB stored for this call. If DynamoDB is unreachable, that lease ends
// after its TTL.
//
// Errors: [lock.ErrHeld] after the wait, joined with ctx's error if ctx ended the wait;
// [fault.InvalidRequest]; [fault.StoreUnavailable]; ctx's error.
func (s *Store) Acquire(ctx context.Context, req lock.Request) (lock.Lease, error) {
	req, err := req.Normalize()
	if err = cmp.Or(err, lock.RefuseSemaphore(req.Kind)); err != nil {
		return lock.Lease{}, err
	}

	started := time.Now()
	for {
		lease, err := s.acquireOnce(ctx, req)
		if err == nil {
			lease.Waited = time.Since(started)
			return lease, nil
		}
		left := req.Wait - time.Since(started)
		if !errors.Is(err, lock.ErrHeld) || left <= 0 {
			return lock.Lease{}, err
		}

		timer := time.NewTimer(min(left, pollInterval-mrand.N(pollInterval/2)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return lock.Lease{}, errors.Join(err, ctx.Err())
		}
	}
}

// acquireOnce tries once, without waiting.
func (s *Store) acquireOnce(ctx context.Context, req lock.Request) (lock.Lease, error) {
	call := rand.Text()
	var granted holder
	var reacquired bool
	err := s.update(ctx, req.Key(), func(r *record, now time.Time) (bool, error) {
		wanted := holder{
			Token:    req.Token,
			Call:     call,
			Owner:    req.Owner,
			Metadata: req.Metadata,
			Mode:     req.Mode,
			Ends:     expiry(now, req.TTL),
		}
		var conflict *lock.Conflict
		granted, reacquired, conflict = r.acquire(wanted, now, Margin)
		if conflict != nil {
			return false, lock.Held(req.Kind, *conflict)
		}
		return true, nil
	})
	if err != nil {
		if !errors.Is(err, lock.ErrHeld) { // DynamoDB may have stored the lease although its reply was lost
			s.abandon(ctx, req, call)
		}
		return lock.Lease{}, err
	}

	return lock.Lease{
		Key:        req.Key(),
		Token:      req.Token,
		Fence:      granted.Fence,
		Mode:       req.Mode,
		TTL:        req.TTL,
		AcquiredAt: granted.Acquired.Time,
		ExpiresAt:  granted.Ends.Time,
		Reacquired: reacquired,
		InUse:      1,
	}, nil
}

// abandon removes the lease of a failed call. It runs even if ctx has ended, for at most
// cleanupTimeout.
func (s *Store) abandon(ctx context.Context, req lock.Request, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_ = s.update(ctx, req.Key(), func(r *record, _ time.Time) (bool, error) {
		return r.abandon(req.Token, call), nil
	})
}

// Renew extends the token's lease to ttl from now. A ttl of 0 means [lock.DefaultTTL]. Renew never
// revives a lease that has ended. Errors: [lock.ErrNotHeld], [fault.InvalidRequest],
// [fault.StoreUnavailable].
func (s *Store) Renew(ctx context.Context, key lock.Key, token string, ttl time.Duration) (lock.Lease, error) {
	key, ttl, err := lock.NormalizeRenewal(key, token, ttl)
	if err = cmp.Or(err, lock.RefuseSemaphore(key.Kind)); err != nil {
		return lock.Lease{}, err
	}

	var renewed holder
	err = s.update(ctx, key, func(r *record, now time.Time) (bool, error) {
		var reason lock.Reason
		if renewed, reason = r.renew(token, now, expiry(now, ttl), Margin); reason != "" {
			return false, lock.NotHeld(reason)
		}
		return true, nil
	})
	if err != nil {
		return lock.Lease{}, err
	}
	return lock.Lease{Key: key, Token: token, TTL: ttl, Fence: renewed.Fence, ExpiresAt: renewed.Ends.Time}, nil
}

// Release ends the token's lease and returns the time that the token held it. A repeated release
// succeeds and returns 0 until another token acquires the lock. Errors: [lock.ErrNotHeld],
// [fault.InvalidRequest], [fault.StoreUnavailable].
func (s *Store) Release(ctx context.Context, key lock.Key, token string) (time.Duration, error) {
	key, err := lock.NormalizeRelease(key, token)
	if err = cmp.Or(err, lock.RefuseSemaphore(key.Kind)); err != nil {
		return 0, err
	}

	var held time.Duration
	err = s.update(ctx, key, func(r *record, now time.Time) (changed bool, err error) {
		var reason lock.Reason
		if held, changed, reason = r.release(token, now, Margin); reason != "" {
			return false, lock.NotHeld(reason)
		}
		return changed, nil
	})
	return held, err
}

// Force ends the leases of all holders and returns their number. The next fence is higher than the
// fences of these holders. Errors: [fault.InvalidRequest], [fault.StoreUnavailable].
func (s *Store) Force(ctx context.Context, key lock.Key) (int64, error) {
	key, err := key.Normalize()
	if err = cmp.Or(err, lock.RefuseSemaphore(key.Kind)); err != nil {
		return 0, err
	}

	var ended int64
	err = s.update(ctx, key, func(r *record, now time.Time) (bool, error) {
		ended = r.force(now, Margin)
		return ended > 0, nil
	})
	return ended, err
}

// Inspect returns the holders. It does not report waiters. Errors: [fault.InvalidRequest],
// [fault.StoreUnavailable].
func (s *Store) Inspect(ctx context.Context, key lock.Key) (lock.State, error) {
	key, err := key.Normalize()
	if err = cmp.Or(err, lock.RefuseSemaphore(key.Kind)); err != nil {
		return lock.State{}, err
	}

	state := lock.State{Key: key, Holders: []lock.Holder{}}
	err = s.update(ctx, key, func(r *record, now time.Time) (bool, error) {
		r.dropEnded(now, 0)
		for _, h := range r.Holders {
			state.Held, state.Mode = true, h.Mode
			state.Holders = append(state.Holders, lock.Holder{
				Owner:      h.Owner,
				Fence:      h.Fence,
				AcquiredAt: h.Acquired.Time,
				ExpiresAt:  h.Ends.Time,
				Metadata:   h.Metadata,
			})
		}
		return false, nil
	})
	return state, err
}

// expiry returns the end of a lease, truncated to microseconds, the precision of the table.
func expiry(now time.Time, ttl time.Duration) instant {
	return instant{now.Add(ttl).Truncate(time.Microsecond)}
}
