package lock_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
)

// TestHistory records the operations of many concurrent clients and checks with porcupine that they
// are linearizable (Herlihy and Wing, 1990). The model is one lock:
//
//	acquire → fence   valid if the lock is free and the fence is higher than every earlier fence
//	end               valid if the lease with this fence is held; then the lock is free
//
// A client that "dies" never releases. Its lease ends at or after its ExpiresAt, by the store's
// clock. Mutual exclusion means that no acquire is ordered before the end of the previous lease.
func TestHistory(t *testing.T) {
	t.Parallel()
	t.Run("one holder at a time, and rising fences", func(t *testing.T) {
		t.Parallel()
		h := newHistory()
		h.record(t, openStore(t, redistest.Single(t)), 1, 3*time.Second)
		h.check(t)
	})

	// While the server hangs, leases expire. A call may take effect although its reply is lost.
	t.Run("the server hangs repeatedly: one holder at a time, and rising fences", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := openProductionStore(t, r)
		h := newHistory()
		stop := inBackground(func(random *rand.Rand) {
			<-time.After(time.Duration(200+random.IntN(400)) * time.Millisecond)
			_ = r.Server.Pause()
			<-time.After(time.Duration(20+random.IntN(150)) * time.Millisecond)
			_ = r.Server.Resume()
		})
		h.record(t, s, 2, 4*time.Second)
		stop()
		h.check(t)
	})

	// No lease survives FLUSHALL, so two clients may believe that they hold the lock. Fences still
	// distinguish the two clients, so the test checks only fences.
	t.Run("Redis loses all data repeatedly: rising fences", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		s := openStore(t, r)
		h := newHistory()
		stop := inBackground(func(*rand.Rand) {
			<-time.After(50 * time.Millisecond)
			_ = r.Client.FlushAll(context.Background()).Err()
		})
		h.record(t, s, 3, 3*time.Second)
		stop()
		h.checkFences(t)
	})

	t.Run("a quorum loses a node: one holder at a time, and rising fences", func(t *testing.T) {
		t.Parallel()
		q, nodes := openQuorum(t, lock.NodeTimeout)
		h := newHistory()
		time.AfterFunc(time.Second, func() { _ = nodes[0].Server.Kill() })
		h.record(t, q, 4, 4*time.Second)
		h.check(t)
	})
}

func TestHistoryChecker(t *testing.T) {
	t.Parallel()
	acquire := func(fence, call int64) porcupine.Operation {
		return porcupine.Operation{Input: lockInput{op: "acquire"}, Output: fence, Call: call, Return: call + 1}
	}
	end := func(fence, call int64) porcupine.Operation {
		return porcupine.Operation{Input: lockInput{op: "end", fence: fence}, Call: call, Return: call + 1}
	}
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		valid   bool
	}{
		"accepts a valid history": {[]porcupine.Operation{acquire(1, 0), end(1, 10), acquire(2, 20)}, true},
		"finds two holders":       {[]porcupine.Operation{acquire(1, 0), acquire(2, 5), end(1, 10)}, false},
		"finds a falling fence":   {[]porcupine.Operation{acquire(2, 0), end(2, 10), acquire(1, 20)}, false},
	} {
		require.Equal(t, tc.valid, porcupine.CheckOperations(lockModel(), tc.history), name)
	}
}

type lockState struct {
	lastFence int64
	held      bool
}

type lockInput struct {
	op    string // "acquire" or "end"
	fence int64  // of the lease that ends; 0 for "acquire"
}

func lockModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(lockState), input.(lockInput) //nolint:forcetypeassert // the model's own types
			if in.op == "end" {
				return s.held && s.lastFence == in.fence, lockState{lastFence: s.lastFence}
			}
			fence, _ := output.(int64)
			return !s.held && fence > s.lastFence, lockState{lastFence: fence, held: true}
		},
	}
}

// history is a list of operations. Their times are relative to the field started.
type history struct {
	started time.Time
	mu      sync.Mutex
	ops     []porcupine.Operation
}

func newHistory() *history { return &history{started: time.Now()} }

// never returns a time after every recorded operation.
func (h *history) never() time.Time { return h.started.Add(time.Hour) }

func (h *history) addAcquire(client int, fence int64, call, ret time.Time) {
	h.add(client, lockInput{op: "acquire"}, fence, call, ret)
}

// addEnd records that a lease ended at some time between earliest and latest.
func (h *history) addEnd(client int, fence int64, earliest, latest time.Time) {
	h.add(client, lockInput{op: "end", fence: fence}, nil, earliest, latest)
}

func (h *history) add(client int, in lockInput, out any, call, ret time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client,
		Input:    in,
		Output:   out,
		Call:     int64(call.Sub(h.started)),
		Return:   int64(ret.Sub(h.started)),
	})
}

// record runs 64 clients that compete for one lock. A client that gets the lock releases it, or
// "dies" and lets its lease expire.
func (h *history) record(t *testing.T, s locktest.Store, seed uint64, d time.Duration) {
	t.Helper()
	const clients = 64
	until := time.Now().Add(d)
	var done sync.WaitGroup
	for client := range clients {
		done.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for time.Now().Before(until) {
				h.round(s, client, random)
			}
		})
	}
	done.Wait()
}

func (h *history) round(s locktest.Store, client int, random *rand.Rand) {
	ctx := context.Background()
	req := lock.Request{
		Name: "history",
		TTL:  lock.MinTTL, // a dead client blocks other clients only briefly
		Wait: time.Duration(random.IntN(3)) * 200 * time.Millisecond,
	}
	called := time.Now()
	lease, err := s.Acquire(ctx, req)
	granted := time.Now()
	if err != nil {
		return // refused, or the outcome is unknown: if there is a lease, it expires unused
	}
	h.addAcquire(client, lease.Fence, called, granted)
	if random.IntN(4) == 0 { // the client dies
		h.addEnd(client, lease.Fence, lease.ExpiresAt, h.never())
		return
	}

	<-time.After(time.Duration(random.IntN(4)) * time.Millisecond)
	releasing := time.Now()
	_, err = s.Release(ctx, lease.Key, lease.Token)
	switch released := time.Now(); {
	case err == nil:
		h.addEnd(client, lease.Fence, releasing, released)
	case errors.Is(err, lock.ErrNotHeld): // the lease expired or was lost after the grant
		h.addEnd(client, lease.Fence, granted, released)
	default: // the outcome is unknown
		h.addEnd(client, lease.Fence, releasing, h.never())
	}
}

func (h *history) check(t *testing.T) {
	t.Helper()
	acquired := h.checkFences(t)
	result := porcupine.CheckOperationsTimeout(lockModel(), h.ops, time.Minute)
	require.Equal(t, porcupine.Ok, result, "%d acquisitions", acquired)
}

// checkFences requires that fences rise in real time: if one acquire returns before a second
// acquire starts, the second acquire has the higher fence. It returns the number of acquires.
func (h *history) checkFences(t *testing.T) int {
	t.Helper()
	var acquired []porcupine.Operation
	for _, op := range h.ops {
		if op.Input.(lockInput).op == "acquire" { //nolint:forcetypeassert // the model's own type
			acquired = append(acquired, op)
		}
	}
	require.Greater(t, len(acquired), 5, "the history has too few acquires")

	fence := func(op porcupine.Operation) int64 {
		return op.Output.(int64) //nolint:forcetypeassert // the model's own type
	}
	slices.SortFunc(acquired, func(a, b porcupine.Operation) int { return cmp.Compare(fence(a), fence(b)) })
	latestCall := int64(0) // latest start of an acquire with a lower fence
	for i, op := range acquired {
		require.GreaterOrEqual(t, op.Return, latestCall, "fences must rise in real time")
		require.True(t, i == 0 || fence(acquired[i-1]) < fence(op), "two acquires have the same fence")
		latestCall = max(latestCall, op.Call)
	}
	return len(acquired)
}

// inBackground repeats a disturbance until stop is called.
func inBackground(disturb func(*rand.Rand)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		random := rand.New(rand.NewPCG(2, 2))
		for ctx.Err() == nil {
			disturb(random)
		}
	})
	return func() { cancel(); done.Wait() }
}
