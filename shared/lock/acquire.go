package lock

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// cleanupTimeout bounds the clean-up after a failed Acquire.
const cleanupTimeout = 150 * time.Millisecond

// unlimited is the maximum number of holders that acquire.lua gets for a shared lock, which has no
// maximum.
const unlimited = 1 << 31

// attempt is the reply of one call of scripts/acquire.lua: a lease, or the conflict that prevented
// it.
type attempt struct {
	lease    *Lease
	conflict Conflict
}

// Acquire acquires a lock or a permit. If the lock is held or no permit is free, Acquire waits up
// to req.Wait.
//
// Waiters are served in order of arrival. A release wakes the first waiter over pub/sub. A wake-up
// may be lost, so each waiter also tries again when the holder's lease ends, and every 300 to 400
// ms. A waiter that has not tried for 2 s, for example because its process died, loses its place in
// the queue.
//
// If the call fails, Acquire leaves the queue and releases any lease that Redis granted to this
// call. If Redis is unreachable, the call loses its place in the queue after 2 s, and the lease
// ends after its TTL.
//
// Errors: [ErrHeld] after the wait, joined with ctx's error if ctx ended the wait;
// [fault.InvalidRequest]; [fault.StoreUnavailable]; ctx's error.
func (r *Redis) Acquire(ctx context.Context, req Request) (Lease, error) {
	req, err := req.Normalize()
	if err != nil {
		return Lease{}, err
	}

	started := time.Now()
	var lease Lease
	if req.Wait > 0 {
		w := &waiter{redis: r, request: req, call: rand.Text(), deadline: started.Add(req.Wait)}
		lease, err = w.acquire(ctx)
	} else {
		lease, err = r.acquireNow(ctx, req)
	}
	if err != nil {
		return Lease{}, err
	}
	lease.Waited = time.Since(started)
	return lease, nil
}

// acquireNow acquires without waiting.
func (r *Redis) acquireNow(ctx context.Context, req Request) (Lease, error) {
	call := rand.Text()
	a, err := r.try(ctx, req, call, tryOptions{})
	if err != nil {
		r.abandon(ctx, req, call) // Redis may have run the script although its reply was lost
		return Lease{}, err
	}
	if a.lease == nil {
		return Lease{}, Held(req.Kind, a.conflict)
	}
	return *a.lease, nil
}

// tryOptions are options of one attempt.
type tryOptions struct {
	enqueue  bool  // if the lock is held, join the queue or keep the place in it
	minFence int64 // the minimum fence to grant; 0 for no minimum
}

// try runs scripts/acquire.lua. call is the ID of the Acquire that makes this attempt.
func (r *Redis) try(ctx context.Context, req Request, call string, o tryOptions) (attempt, error) {
	args := []any{
		leaseColumn(req.TTL),
		req.Token + "\n" + call + "\n" + req.Owner + "\n" + string(req.Metadata),
		(req.TTL + linger).Milliseconds(),
	}
	exclusive := req.Mode == Exclusive
	if !exclusive || o != (tryOptions{}) { // the script's defaults: exclusive, no queue, no minimum fence
		args = append(args, permits(req), heartbeatOf(o), fenceColumn(o.minFence))
	}

	// Fast path: if there are no waiters and no shared holders, an exclusive lock needs only the
	// state key. Otherwise the script changes nothing and replies 0.
	if exclusive && !o.enqueue {
		reply, err := r.conn.Run(ctx, acquireScript, []string{req.Key().stateKey()}, args...)
		if err != nil || reply != int64(0) {
			return parseAttempt(req, reply, err)
		}
	}
	reply, err := r.conn.Run(ctx, acquireScript, req.Key().redisKeys(), args...)
	return parseAttempt(req, reply, err)
}

// permits returns the maximum number of concurrent holders, or 0 for the exclusive mode.
func permits(req Request) int64 {
	switch {
	case req.Mode == Exclusive:
		return 0
	case req.Kind == Semaphore:
		return req.Capacity
	default:
		return unlimited
	}
}

// heartbeatOf returns the time in µs that the caller keeps its place in the queue, or 0 if it does
// not queue.
func heartbeatOf(o tryOptions) int64 {
	if o.enqueue {
		return heartbeat.Microseconds()
	}
	return 0
}

// leaseColumn formats a TTL for the state string: µs, right-aligned in ten columns.
func leaseColumn(ttl time.Duration) string { return fmt.Sprintf("%10d", ttl.Microseconds()) }

// fenceColumn formats a fence for the state string: 16 digits, or "" for 0.
func fenceColumn(fence int64) string {
	if fence == 0 {
		return ""
	}
	return fmt.Sprintf("%016d", fence)
}

// parseAttempt parses a reply of scripts/acquire.lua. The header of the script documents the
// replies.
func parseAttempt(req Request, reply any, err error) (attempt, error) {
	if err != nil {
		return attempt{}, err
	}

	lease := Lease{Key: req.Key(), Token: req.Token, Mode: req.Mode, TTL: req.TTL, InUse: 1}
	values, ok := reply.([]any)
	switch {
	case !ok && integer(reply) > 0:
		lease.Fence = integer(reply)
		lease.AcquiredAt = instant(reply)
		lease.ExpiresAt = lease.AcquiredAt.Add(req.TTL.Truncate(time.Microsecond))
	case len(values) == 6:
		lease.Fence = integer(values[1])
		lease.AcquiredAt, lease.ExpiresAt = instant(values[2]), instant(values[3])
		lease.Reacquired, lease.InUse = integer(values[4]) == 1, integer(values[5])
	case len(values) == 4:
		owner, _ := values[2].(string)
		return attempt{conflict: Conflict{
			Obstacle:  Obstacle(integer(values[3])),
			Holder:    owner,
			Remaining: time.Duration(integer(values[1])) * time.Microsecond,
		}}, nil
	default:
		return attempt{}, fmt.Errorf("unexpected reply from acquire.lua: %v", reply)
	}
	return attempt{lease: &lease}, nil
}

// abandon cleans up after a failed call: it removes the call from the queue and releases the lease
// that the call acquired, if any. It runs even if ctx has ended, for at most cleanupTimeout.
func (r *Redis) abandon(ctx context.Context, req Request, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, _ = r.conn.Run(ctx, releaseScript, req.Key().redisKeys(), req.Token, lingerMS, call)
}
