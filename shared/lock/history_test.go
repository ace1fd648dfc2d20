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

	"github.com/sluicehq/sluice/localstack/locktest"
	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// The histories of many clients are recorded and checked for linearizability (Herlihy and Wing,
// 1990) with porcupine. The model is one lock:
//
//	acquire → fence   the lock is free, and fence is higher than every one before; now it is held
//	end               the lease with this fence is over: released, forced away, or run out
//
// A lease that its client never gives back, because it "died", ends by itself: from its expires_at,
// by the store's clock, on. So mutual exclusion is: no acquire can be put before the end of the
// lease before it.
type lockState struct {
	last int64
	held bool
}

type lockInput struct {
	op    string // "acquire" or "end"
	fence int64  // of end
}

func lockModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(lockState), input.(lockInput) //nolint:forcetypeassert // the model's own types
			if in.op == "end" {
				return s.held && s.last == in.fence, lockState{last: s.last}
			}
			fence, _ := output.(int64)
			return !s.held && fence > s.last, lockState{last: fence, held: true}
		},
	}
}

// history records operations; instants are since its start.
type history struct {
	started time.Time
	mu      sync.Mutex
	ops     []porcupine.Operation
}

func (h *history) add(client int, in lockInput, out any, call, ret time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out,
		Call: int64(call.Sub(h.started)), Return: int64(ret.Sub(h.started))})
}

const clients = 64

// play lets many clients fight for one lock for a while. They release it, force it away from
// whoever has it, let it expire, or die with it.
func (h *history) play(t *testing.T, l locktest.Backend, seed uint64, until time.Time) {
	t.Helper()
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for time.Now().Before(until) {
				h.round(t, l, c, random)
			}
		})
	}
	wait.Wait()
}

func (h *history) round(t *testing.T, l locktest.Backend, c int, random *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	// The lease is short, so that those who die do not stop the others for long.
	q := locktest.Request(t, lock.Request{Name: "history", TTL: lock.MinTTL,
		Wait: time.Duration(random.IntN(3)) * 200 * time.Millisecond})
	called := time.Now()
	lease, err := l.Acquire(ctx, q)
	got := time.Now()
	if err != nil {
		return // refused, or unknown: what an unknown call took ends with its lease, and nobody ever has its fence
	}
	h.add(c, lockInput{op: "acquire"}, lease.Fence, called, got)
	// Whatever happens, the lease is over at expires_at and not before it is released. The end
	// takes effect somewhere between.
	ends := time.UnixMilli(lease.ExpiresAt)
	if random.IntN(4) == 0 {
		// it died: the store ends the lease some time after
		h.add(c, lockInput{op: "end", fence: lease.Fence}, nil, ends, h.started.Add(time.Hour))
		return
	}
	<-time.After(time.Duration(random.IntN(4)) * time.Millisecond)
	released := time.Now()
	_, err = l.Release(ctx, lock.Lock, q.Name, q.Token)
	switch over := time.Now(); {
	case err == nil:
		h.add(c, lockInput{op: "end", fence: lease.Fence}, nil, released, over)
	// it ran out, or the data was lost, at some time since it was granted
	case errors.Is(err, fault.New(fault.LockNotHeld, "")):
		h.add(c, lockInput{op: "end", fence: lease.Fence}, nil, got, over)
	default: // nobody knows: at the latest it ran out
		h.add(c, lockInput{op: "end", fence: lease.Fence}, nil, released, h.started.Add(time.Hour))
	}
}

func (h *history) check(t *testing.T) {
	t.Helper()
	acquired := h.checkFences(t)
	result := porcupine.CheckOperationsTimeout(lockModel(), h.ops, time.Minute)
	require.Equal(t, porcupine.Ok, result, "%d acquisitions", acquired)
}

// checkFences demands that who acquired later, in real time, has the higher fence, and returns how
// many acquired.
func (h *history) checkFences(t *testing.T) int {
	t.Helper()
	var acquired []porcupine.Operation
	for _, op := range h.ops {
		if op.Input.(lockInput).op == "acquire" { //nolint:forcetypeassert // our own type
			acquired = append(acquired, op)
		}
	}
	require.Greater(t, len(acquired), 5, "the history shows something")
	fence := func(op porcupine.Operation) int64 { return op.Output.(int64) } //nolint:forcetypeassert // our own type
	slices.SortFunc(acquired, func(a, b porcupine.Operation) int { return cmp.Compare(fence(a), fence(b)) })
	begun := int64(0) // the latest beginning of those with lower fences
	for i, op := range acquired {
		require.GreaterOrEqual(t, op.Return, begun, "it ended before one with a lower fence began")
		require.True(t, i == 0 || fence(acquired[i-1]) < fence(op), "two have one fence")
		begun = max(begun, op.Call)
	}
	return len(acquired)
}

func TestHistoriesOfManyClientsShowOneHolderAtATimeAndRisingFences(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	h := &history{started: time.Now()}
	h.play(t, open(t, r), 1, time.Now().Add(3*time.Second))
	h.check(t)
}

// While the server hangs leases run out, and calls whose answers were lost may have been carried
// out.
func TestHistoriesOverPausesOfTheServerShowTheSame(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := lock.NewRedis(conn(t, r.URL))
	t.Cleanup(func() { _ = l.Close() })
	h := &history{started: time.Now()}
	until := time.Now().Add(4 * time.Second)
	var wait sync.WaitGroup
	wait.Go(func() {
		for random := rand.New(rand.NewPCG(2, 2)); time.Now().Before(until); {
			<-time.After(time.Duration(200+random.IntN(400)) * time.Millisecond)
			_ = r.Server.Pause()
			<-time.After(time.Duration(20+random.IntN(150)) * time.Millisecond)
			_ = r.Server.Resume()
		}
	})
	h.play(t, l, 2, until)
	wait.Wait()
	h.check(t)
}

// After FLUSHALL there may be two who believe to hold the lock: no lease survives that, and only
// the fence tells them apart. So only fences are checked.
func TestFencesRiseInHistoriesThatLoseAllData(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := open(t, r)
	h := &history{started: time.Now()}
	until := time.Now().Add(3 * time.Second)
	var wait sync.WaitGroup
	wait.Go(func() {
		for time.Now().Before(until) {
			<-time.After(50 * time.Millisecond)
			_ = r.Client.FlushAll(context.Background()).Err()
		}
	})
	h.play(t, l, 3, until)
	wait.Wait()
	h.checkFences(t)
}

func TestHistoriesOnAQuorumThatLosesANodeShowOneHolderAtATime(t *testing.T) {
	t.Parallel()
	q, nodes := quorum(t, lock.NodeTimeout)
	h := &history{started: time.Now()}
	until := time.Now().Add(4 * time.Second)
	time.AfterFunc(time.Second, func() { _ = nodes[0].Server.Kill() })
	h.play(t, q, 4, until)
	h.check(t)
}

// The checker finds what it looks for: two holders at once, and a fence that falls.
func TestTheHistoryCheckerFindsViolations(t *testing.T) {
	t.Parallel()
	acquire := func(fence, call int64) porcupine.Operation {
		return porcupine.Operation{Input: lockInput{op: "acquire"}, Output: fence, Call: call, Return: call + 1}
	}
	end := func(fence, call int64) porcupine.Operation {
		return porcupine.Operation{Input: lockInput{op: "end", fence: fence}, Call: call, Return: call + 1}
	}
	require.True(t, porcupine.CheckOperations(lockModel(),
		[]porcupine.Operation{acquire(1, 0), end(1, 10), acquire(2, 20)}))
	require.False(t, porcupine.CheckOperations(lockModel(),
		[]porcupine.Operation{acquire(1, 0), acquire(2, 5), end(1, 10)}), "two at once")
	require.False(t, porcupine.CheckOperations(lockModel(),
		[]porcupine.Operation{acquire(2, 0), end(2, 10), acquire(1, 20)}), "a fence that falls")
}
