package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// NodeTimeout is the call timeout for the connections of a [Quorum]. It bounds the delay that an
// unresponsive node causes.
const NodeTimeout = 200 * time.Millisecond

// Quorum keeps each lock on several independent Redis primaries, the nodes. It grants a lock if a
// majority of the nodes grants it. This is the algorithm Redlock
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/) with a fence. Quorum
// tolerates the loss of a minority of nodes, including their data. A lease starts when Acquire or
// Renew sends its requests, by the monotonic clock of this process. To allow for the drift of the
// nodes' clocks, a lease is shorter than its TTL: by 1 % of the TTL plus 2 ms.
//
// Waiters poll and are served in no particular order. Quorum does not support semaphores. It is
// safe for concurrent use.
type Quorum struct {
	nodes []*Redis
}

// NewQuorum returns a Quorum of at least three nodes. The connections should have [NodeTimeout] as
// their call timeout.
func NewQuorum(conns []*redisconn.Conn) (*Quorum, error) {
	if len(conns) < 3 {
		return nil, fmt.Errorf("a quorum needs at least 3 nodes, got %d", len(conns))
	}
	q := &Quorum{}
	for _, c := range conns {
		q.nodes = append(q.nodes, NewRedis(c))
	}
	return q, nil
}

func (q *Quorum) majority() int { return majority(len(q.nodes)) }

// drift returns the allowance for the drift of a node's clock during a lease: 1 % of ttl plus 2 ms.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// expiry returns the end of a lease, by this process's clock. requested is the time of the request.
func expiry(requested time.Time, ttl time.Duration) time.Time {
	return requested.Add(ttl - drift(ttl)).Round(0).UTC()
}

// Renew extends a lease if a majority of nodes still holds it. It has the same arguments and errors
// as [Redis.Renew].
func (q *Quorum) Renew(ctx context.Context, key Key, token string, ttl time.Duration) (Lease, error) {
	key, ttl, err := NormalizeRenewal(key, token, ttl)
	if err = cmp.Or(err, RefuseSemaphore(key.Kind)); err != nil {
		return Lease{}, err
	}

	started := time.Now()
	renew := func(ctx context.Context, node *Redis) (Lease, error) { return node.renew(ctx, key, token, ttl) }
	results := fanOut(ctx, q.nodes, renew, majorityOf(anyValue[Lease]))
	if err := majorityError(results); err != nil {
		return Lease{}, err
	}
	if time.Since(started)+drift(ttl) >= ttl {
		return Lease{}, fault.Unavailable("redis quorum", errors.New("the lease ended before it was renewed"))
	}

	var fences []int64
	for _, r := range results {
		if r.err == nil {
			fences = append(fences, r.value.Fence)
		}
	}
	fence, err := q.agreeOnFence(ctx, key, token, fences)
	if err != nil {
		return Lease{}, err
	}
	return Lease{Key: key, Token: token, TTL: ttl, Fence: fence, ExpiresAt: expiry(started, ttl)}, nil
}

// Release ends the lease on every node. It succeeds if a majority of nodes released the lease. It
// has the same arguments and errors as [Redis.Release].
func (q *Quorum) Release(ctx context.Context, key Key, token string) (time.Duration, error) {
	key, err := NormalizeRelease(key, token)
	if err = cmp.Or(err, RefuseSemaphore(key.Kind)); err != nil {
		return 0, err
	}

	results := callAll(ctx, q.nodes, func(ctx context.Context, node *Redis) (time.Duration, error) {
		return node.release(ctx, key, token)
	})
	var held time.Duration
	for _, r := range results {
		held = max(held, r.value)
	}
	return held, majorityError(results)
}

// Force ends the leases of all holders and returns their number. Errors: [fault.InvalidRequest],
// [fault.StoreUnavailable].
func (q *Quorum) Force(ctx context.Context, key Key) (int64, error) {
	key, err := key.Normalize()
	if err = cmp.Or(err, RefuseSemaphore(key.Kind)); err != nil {
		return 0, err
	}

	results := callAll(ctx, q.nodes, func(ctx context.Context, node *Redis) (int64, error) {
		return node.force(ctx, key)
	})
	var ended int64
	for _, r := range results {
		ended = max(ended, r.value)
	}
	return ended, majorityError(results)
}

// Inspect returns the holders that a majority of nodes reports. It does not report waiters. Errors:
// [fault.InvalidRequest], [fault.StoreUnavailable].
func (q *Quorum) Inspect(ctx context.Context, key Key) (State, error) {
	key, err := key.Normalize()
	if err = cmp.Or(err, RefuseSemaphore(key.Kind)); err != nil {
		return State{}, err
	}

	results := callAll(ctx, q.nodes, func(ctx context.Context, node *Redis) (State, error) {
		return node.inspect(ctx, key)
	})
	if err := majorityError(results); err != nil {
		return State{}, err
	}

	state := State{Key: key, Holders: []Holder{}}
	nodesWith := make(map[int64]int) // fence → number of nodes
	for _, r := range results {
		for _, h := range r.value.Holders {
			if nodesWith[h.Fence]++; nodesWith[h.Fence] == q.majority() {
				state.Held, state.Mode = true, r.value.Mode
				state.Holders = append(state.Holders, h)
			}
		}
	}
	return state, nil
}

// agreeOnFence returns the highest fence that a node granted. If the fences differ, it first writes
// the highest fence to a majority of nodes. Every later majority includes at least one of these
// nodes, so the next holder's fence is higher. Fences differ if the nodes' clocks differ by more
// than clockLead, or if a node has lost its data.
func (q *Quorum) agreeOnFence(ctx context.Context, key Key, token string, fences []int64) (int64, error) {
	highest := slices.Max(fences)
	if slices.Min(fences) == highest {
		return highest, nil
	}

	raise := func(ctx context.Context, node *Redis) (bool, error) {
		reply, err := node.conn.Run(ctx, raiseScript, key.redisKeys()[:3], token, highest)
		return integer(reply) == 1, err
	}
	raised := func(ok bool) bool { return ok }
	results := fanOut(ctx, q.nodes, raise, majorityOf(raised))
	if count(results, raised) < q.majority() {
		return 0, fault.Unavailable("redis quorum", joinErrors(results))
	}
	return highest, nil
}
