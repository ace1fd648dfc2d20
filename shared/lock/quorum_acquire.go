package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// The minimum fence of an Acquire is the time of this process's clock plus clockLead. All nodes
	// grant the same fence if clockLead exceeds the duration of the call plus the difference
	// between the clocks.
	clockLead = time.Second
	// minRetryPause and maxRetryPause bound the pauses of a waiter.
	minRetryPause = 20 * time.Millisecond
	maxRetryPause = 200 * time.Millisecond
)

// Acquire acquires a lock. If it is held, Acquire waits up to req.Wait. After an error, Acquire
// releases this call's lease on every reachable node; on an unreachable node the lease ends after
// its TTL.
//
// Errors: [ErrHeld] after the wait, joined with ctx's error if ctx ended the wait;
// [fault.InvalidRequest]; [fault.StoreUnavailable] if no majority replies; ctx's error.
func (q *Quorum) Acquire(ctx context.Context, req Request) (Lease, error) {
	req, err := req.Normalize()
	if err = cmp.Or(err, RefuseSemaphore(req.Kind)); err != nil {
		return Lease{}, err
	}

	started := time.Now()
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		lease, err := q.acquireOnce(ctx, req)
		if err == nil {
			lease.Waited = time.Since(started)
			return lease, nil
		}
		left := req.Wait - time.Since(started)
		if !errors.Is(err, ErrHeld) || left <= 0 {
			return Lease{}, err
		}

		timer := time.NewTimer(min(left, pause/2+mrand.N(pause/2)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Lease{}, errors.Join(err, ctx.Err())
		}
	}
}

// acquireOnce tries once on all nodes.
func (q *Quorum) acquireOnce(ctx context.Context, req Request) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, fmt.Errorf("the caller ended the call: %w", err)
	}

	started, call := time.Now(), rand.Text()
	options := tryOptions{minFence: started.Add(clockLead).UnixMicro()}
	undo := newUndo(len(q.nodes))
	try := func(ctx context.Context, node *Redis) (attempt, error) {
		a, err := node.try(ctx, req, call, options)
		undo.register(func() { node.abandon(ctx, req, call) })
		return a, err
	}

	results := fanOut(ctx, q.nodes, try, q.grantDecided)
	lease, err := q.leaseOf(ctx, req, results)
	if err == nil && time.Since(started)+drift(req.TTL) >= req.TTL {
		err = fault.Unavailable("redis quorum", errors.New("the lease ended before it was granted"))
	}
	undo.finish(err != nil)
	if err != nil {
		return Lease{}, err
	}
	lease.ExpiresAt = expiry(started, req.TTL)
	return lease, nil
}

// grantDecided reports whether the results decide the Acquire: a majority has granted the lock, or
// a majority can no longer grant it. If the token already holds the lock on a node, the node keeps
// the fence and sets Reacquired in its reply. The other nodes grant a new fence. leaseOf keeps the
// old fence only if a majority set Reacquired. So if some replies set Reacquired, but not yet a
// majority, grantDecided returns false and the fan-out waits for more replies.
func (q *Quorum) grantDecided(results []result[attempt], pending int) bool {
	granted := count(results, func(a attempt) bool { return a.lease != nil })
	reacquired := count(results, func(a attempt) bool { return a.lease != nil && a.lease.Reacquired })
	if granted+pending < q.majority() {
		return true
	}
	return granted >= q.majority() && (reacquired == 0 || reacquired >= q.majority())
}

// leaseOf returns the lease that a majority of the nodes granted, with the fence they agree on.
func (q *Quorum) leaseOf(ctx context.Context, req Request, results []result[attempt]) (Lease, error) {
	lease := Lease{Key: req.Key(), Token: req.Token, Mode: req.Mode, TTL: req.TTL, InUse: 1}
	var fences, reacquired []int64
	for _, r := range results {
		granted := r.value.lease
		if r.err != nil || granted == nil {
			continue
		}
		fences = append(fences, granted.Fence)
		if granted.Reacquired {
			reacquired = append(reacquired, granted.Fence)
		}
		if granted.AcquiredAt.After(lease.AcquiredAt) {
			lease.AcquiredAt = granted.AcquiredAt
		}
	}

	if len(fences) < q.majority() {
		return Lease{}, q.refusalOf(req, len(fences), results)
	}
	if len(reacquired) >= q.majority() { // ignore the new fence of a node that had lost the lease
		lease.Reacquired, fences = true, reacquired
	}

	var err error
	lease.Fence, err = q.agreeOnFence(ctx, req.Key(), req.Token, fences)
	return lease, err
}

// refusalOf returns ErrHeld if a majority replied, and a store_unavailable error otherwise. A grant
// also counts as a reply: if several callers compete, each caller may be granted the lock by only a
// minority of the nodes.
func (q *Quorum) refusalOf(req Request, granted int, results []result[attempt]) error {
	refused := count(results, func(a attempt) bool { return a.lease == nil })
	if granted+refused < q.majority() {
		return fault.Unavailable("redis quorum", joinErrors(results))
	}

	conflict := Conflict{Remaining: maxRetryPause}
	for _, r := range results {
		if r.err == nil && r.value.lease == nil {
			conflict = r.value.conflict
		}
	}
	return Held(req.Kind, conflict)
}

// undo reverts a failed call on every node that replied, including nodes that reply after the call
// has returned.
type undo struct {
	finished chan struct{} // closed once the call has succeeded or failed
	failed   bool          // valid once finished is closed
	nodes    sync.WaitGroup
}

// newUndo returns an undo for a call on this number of nodes. The caller must call register once
// for each node.
func newUndo(nodes int) *undo {
	u := &undo{finished: make(chan struct{})}
	u.nodes.Add(nodes)
	return u
}

// register runs revert in the background if the call fails.
func (u *undo) register(revert func()) {
	go func() {
		defer u.nodes.Done()
		<-u.finished
		if u.failed {
			revert()
		}
	}()
}

// finish records whether the call failed. If the call failed, finish waits until every node has
// reverted the call, for at most cleanupTimeout.
func (u *undo) finish(failed bool) {
	u.failed = failed
	close(u.finished)
	if !failed {
		return
	}

	reverted := make(chan struct{})
	go func() { u.nodes.Wait(); close(reverted) }()
	select {
	case <-reverted:
	case <-time.After(cleanupTimeout):
	}
}
