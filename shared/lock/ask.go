package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// answer is what one node of a quorum said.
type answer[T any] struct {
	value T
	err   error
}

// grace is how long the other nodes are waited for once it is decided: a lock should be on all of
// them, and a process that is frozen after its answer sends nothing more.
const grace = 15 * time.Millisecond

var errNoAnswer = errors.New("no answer in time")

// ask asks every node at once. It returns soon after a majority said yes, or no majority can any
// more; nodes that have not answered by then count as errors, and their calls end by themselves
// within NodeTimeout.
func ask[T any](ctx context.Context, m *Quorum,
	call func(context.Context, *Redis) (T, error), yes func(T) bool) []answer[T] {
	return gather(ctx, m, call, func(answers []answer[T], left int) bool {
		n := count(answers, yes)
		return n >= m.majority() || n+left < m.majority()
	})
}

// askAll waits for every node, each within NodeTimeout.
func askAll[T any](ctx context.Context, m *Quorum, call func(context.Context, *Redis) (T, error)) []answer[T] {
	return gather(ctx, m, call, func([]answer[T], int) bool { return false })
}

func gather[T any](ctx context.Context, m *Quorum,
	call func(context.Context, *Redis) (T, error), decided func([]answer[T], int) bool) []answer[T] {
	type numbered struct {
		node int
		answer[T]
	}
	arrived := make(chan numbered, len(m.nodes))
	// a node's call has a timeout of its own, and one that has begun had better end well
	ctx = context.WithoutCancel(ctx)
	for i, n := range m.nodes {
		go func() {
			value, err := call(ctx, n)
			arrived <- numbered{i, answer[T]{value, err}}
		}()
	}
	out := make([]answer[T], len(m.nodes))
	for i := range out {
		out[i].err = errNoAnswer
	}
	var enough <-chan time.Time
	for left := len(m.nodes); left > 0; left-- {
		if enough == nil && decided(out, left) {
			enough = time.After(grace)
		}
		select {
		case a := <-arrived:
			out[a.node] = a.answer
		case <-enough:
			return out
		}
	}
	return out
}

// count is how many answered, and said yes.
func count[T any](answers []answer[T], yes func(T) bool) int {
	n := 0
	for _, a := range answers {
		if a.err == nil && yes(a.value) {
			n++
		}
	}
	return n
}

// settled is nil when a majority did it; what a majority refused it for; or that the store is away.
func settled[T any](m *Quorum, answers []answer[T]) error {
	if count(answers, func(T) bool { return true }) >= m.majority() {
		return nil
	}
	refused := make(map[any]int)
	var refusal error
	for _, a := range answers {
		var f *fault.Error
		if !errors.As(a.err, &f) || f.Code != fault.LockNotHeld {
			continue
		}
		refused["all"]++
		if refused[f.Extra["reason"]]++; refusal == nil || f.Extra["reason"] == HeldByOther {
			refusal = a.err
		}
	}
	if refused["all"] > len(answers)-m.majority() { // no majority can hold it
		return refusal
	}
	return fault.Unavailable("redis quorum", failures(answers))
}

// failures joins what went wrong, for the log.
func failures[T any](answers []answer[T]) error {
	var errs []error
	for i, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("node %d: %w", i+1, a.err))
		}
	}
	return errors.Join(errs...)
}
