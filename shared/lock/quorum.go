package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// Quorum keeps locks on several independent Redis primaries, and holds one where a majority grants
// it: Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), with a fence.
// It survives the loss of a minority, data included. Validity is counted from the start of a call,
// on this process' monotonic clock, less an allowance for the drift of the nodes' clocks.
//
// Waiters poll, and in no order. There are no semaphores.
type Quorum struct {
	nodes []*Redis
}

// NodeTimeout is the call timeout that a quorum's connections should have, so that a hung node
// costs no more than that.
const NodeTimeout = 200 * time.Millisecond

const (
	// ahead is added to this process' clock for the least fence that the nodes are asked for, so
	// that they all give out that one: it is more than a call may take and than their clocks are
	// ahead of ours, as a rule.
	ahead = time.Second
	// retryFirst and retryMost bound the pauses of a waiter.
	retryFirst = 20 * time.Millisecond
	retryMost  = 200 * time.Millisecond
)

// NewQuorum makes a Quorum of at least three nodes, whose connections have NodeTimeout.
func NewQuorum(conns []*redisconn.Conn) (*Quorum, error) {
	if len(conns) < 3 {
		return nil, fmt.Errorf("a quorum needs at least 3 nodes, not %d", len(conns))
	}
	q := &Quorum{}
	for _, c := range conns {
		q.nodes = append(q.nodes, NewRedis(c))
	}
	return q, nil
}

func (m *Quorum) majority() int { return len(m.nodes)/2 + 1 }

// drift is how far a node's clock may run from ours during a lease.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Acquire takes a lock, waiting for it up to q.Wait. q must have been normalized.
//
// Errors: lock_held; store_unavailable when no majority answers; ctx's own. After any of them it is
// given back wherever it was granted.
func (m *Quorum) Acquire(ctx context.Context, q Request) (Lease, error) {
	started := time.Now()
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		lease, err := m.once(ctx, q)
		if err == nil {
			lease.Waited = time.Since(started)
			return lease, nil
		}
		left := q.Wait - time.Since(started)
		if fault.CodeOf(err) != fault.LockHeld || left <= 0 {
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

func (m *Quorum) once(ctx context.Context, q Request) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, fmt.Errorf("the call ended with its caller: %w", err)
	}
	started, call := time.Now(), rand.Text()
	least := fmt.Sprintf("%016d", started.Add(ahead).UnixMicro())
	// whether the call failed: then each node gives back what it granted, also when that comes late
	ended := make(chan bool, len(m.nodes))
	var clean sync.WaitGroup
	clean.Add(len(m.nodes))
	answers := gather(ctx, m, func(ctx context.Context, n *Redis) (attempt, error) {
		a, err := n.tryFrom(ctx, q, call, false, least)
		go func() {
			defer clean.Done()
			if <-ended {
				n.giveUp(ctx, q, call)
			}
		}()
		return a, err
	}, m.decided)
	lease, fences, err := m.granted(q, answers)
	if err == nil {
		lease.Fence, err = m.agree(ctx, q.Kind, q.Name, q.Token, fences)
	}
	valid := q.TTL - time.Since(started) - drift(q.TTL)
	if err == nil && valid <= 0 {
		err = fault.Unavailable("redis quorum", errors.New("the lease would have ended before it was granted"))
	}
	for range m.nodes {
		ended <- err != nil
	}
	if err != nil {
		within(cleanupLimit, clean.Wait)
		return Lease{}, err
	}
	lease.ExpiresAt = started.Add(q.TTL - drift(q.TTL)).UnixMilli()
	return lease, nil
}

// decided is when a majority granted it, all of them anew or a majority of them again, or when no
// majority can any more.
func (m *Quorum) decided(answers []answer[attempt], left int) bool {
	yes := count(answers, func(a attempt) bool { return a.lease != nil })
	again := count(answers, func(a attempt) bool { return a.lease != nil && a.lease.Reacquired })
	return yes >= m.majority() && (again == 0 || again >= m.majority()) || yes+left < m.majority()
}

// granted makes one lease of a majority's, and returns the fences that its nodes gave.
func (m *Quorum) granted(q Request, answers []answer[attempt]) (Lease, []int64, error) {
	lease := Lease{Name: q.Name, Token: q.Token, Mode: q.Mode, TTL: q.TTL, InUse: 1}
	var refusal *attempt
	var fences, before []int64 // all, and those of nodes that the token held already
	for _, a := range answers {
		switch {
		case a.err != nil:
		case a.value.lease == nil:
			refusal = &a.value
		default:
			fences = append(fences, a.value.lease.Fence)
			lease.AcquiredAt = max(lease.AcquiredAt, a.value.lease.AcquiredAt)
			if a.value.lease.Reacquired {
				before = append(before, a.value.lease.Fence)
			}
		}
	}
	if len(fences) < m.majority() {
		return Lease{}, nil, m.refused(len(fences), refusal, answers)
	}
	if len(before) >= m.majority() { // its fence stays, whatever a node says that had lost it
		lease.Reacquired, fences = true, before
	}
	return lease, fences, nil
}

// refused tells a lock that is held, or fought for, from nodes that are away.
func (m *Quorum) refused(yes int, refusal *attempt, answers []answer[attempt]) error {
	if yes+m.refusals(answers) < m.majority() {
		return fault.Unavailable("redis quorum", failures(answers))
	}
	if refusal == nil {
		refusal = &attempt{remaining: retryMost}
	}
	return refusal.held()
}

func (m *Quorum) refusals(answers []answer[attempt]) int {
	n := 0
	for _, a := range answers {
		if a.err == nil && a.value.lease == nil {
			n++
		}
	}
	return n
}

// agree returns the highest fence, after it was written to a majority where nodes gave different
// ones: every other majority shares a node with it, and so the next holder's fence is higher. Nodes
// give different ones when their clocks are further apart than ahead.
func (m *Quorum) agree(ctx context.Context, kind Kind, name, token string, fences []int64) (int64, error) {
	highest := slices.Max(fences)
	if slices.Min(fences) == highest {
		return highest, nil
	}
	yes := func(ok bool) bool { return ok }
	raised := ask(ctx, m, func(ctx context.Context, n *Redis) (bool, error) {
		reply, err := n.conn.Run(ctx, raiseScript, keys(kind, name)[:3], token, highest)
		return integer(reply) == 1, err
	}, yes)
	if count(raised, yes) < m.majority() {
		return 0, fault.Unavailable("redis quorum", failures(raised))
	}
	return highest, nil
}

// Renew extends a lease where a majority still grants it. Errors: lock_not_held, store_unavailable.
func (m *Quorum) Renew(ctx context.Context, kind Kind, name, token string, ttl time.Duration) (Lease, error) {
	started := time.Now()
	answers := ask(ctx, m, func(ctx context.Context, n *Redis) (Lease, error) {
		return n.Renew(ctx, kind, name, token, ttl)
	},
		func(Lease) bool { return true })
	if err := settled(m, answers); err != nil {
		return Lease{}, err
	}
	if time.Since(started)+drift(ttl) >= ttl {
		return Lease{}, fault.Unavailable("redis quorum",
			errors.New("the lease would have ended before it was renewed"))
	}
	var fences []int64
	for _, a := range answers {
		if a.err == nil {
			fences = append(fences, a.value.Fence)
		}
	}
	fence, err := m.agree(ctx, kind, name, token, fences)
	return Lease{Name: name, Token: token, TTL: ttl, Fence: fence,
		ExpiresAt: started.Add(ttl - drift(ttl)).UnixMilli()}, err
}

// Release gives a lock back on every node, and succeeds when a majority had it. Errors:
// lock_not_held, store_unavailable.
func (m *Quorum) Release(ctx context.Context, kind Kind, name, token string) (time.Duration, error) {
	answers := askAll(ctx, m, func(ctx context.Context, n *Redis) (time.Duration, error) {
		return n.Release(ctx, kind, name, token)
	})
	var held time.Duration
	for _, a := range answers {
		held = max(held, a.value)
	}
	return held, settled(m, answers)
}

// Force takes it from everybody who holds it, and returns how many did. Errors: store_unavailable.
func (m *Quorum) Force(ctx context.Context, kind Kind, name string) (int64, error) {
	answers := askAll(ctx, m, func(ctx context.Context, n *Redis) (int64, error) { return n.Force(ctx, kind, name) })
	var lost int64
	for _, a := range answers {
		lost = max(lost, a.value)
	}
	return lost, settled(m, answers)
}

// Inspect reads who holds it by a majority. Who waits cannot be told. Errors: store_unavailable.
func (m *Quorum) Inspect(ctx context.Context, kind Kind, name string) (State, error) {
	answers := askAll(ctx, m, func(ctx context.Context, n *Redis) (State, error) { return n.Inspect(ctx, kind, name) })
	if err := settled(m, answers); err != nil {
		return State{}, err
	}
	out := State{Name: name, Holders: []Holder{}}
	seen := make(map[int64]int) // fence → on how many nodes
	for _, a := range answers {
		for _, h := range a.value.Holders {
			if seen[h.Fence]++; seen[h.Fence] == m.majority() {
				out.Held, out.Mode, out.Holders = true, a.value.Mode, append(out.Holders, h)
			}
		}
	}
	return out, nil
}

// within waits for something, but no longer than a while.
func within(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
