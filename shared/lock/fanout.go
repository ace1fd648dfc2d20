package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// stragglerGrace is the time that a fan-out waits for slow nodes after its outcome is decided.
// Lambda may freeze the process after its response. Without this time, a slow node might never
// receive the call.
const stragglerGrace = 15 * time.Millisecond

var errNoReply = errors.New("no reply in time")

// result is the result of a call on one node.
type result[T any] struct {
	value T
	err   error
}

// decided is a function that reports whether the results so far determine the outcome of a fan-out,
// whatever the pending nodes reply.
type decided[T any] func(results []result[T], pending int) bool

// callAll calls all nodes concurrently and returns their results, in the order of the nodes. It
// waits for every node; each call ends within the node's call timeout.
func callAll[T any](ctx context.Context, nodes []*Redis, call func(context.Context, *Redis) (T, error)) []result[T] {
	return fanOut(ctx, nodes, call, func([]result[T], int) bool { return false })
}

// fanOut calls all nodes concurrently and returns their results, in the order of the nodes. Once
// the function done returns true, fanOut waits for the pending nodes for stragglerGrace only. The
// result of a node that has not replied by then is errNoReply; its call continues in the background
// and ends within the node's call timeout.
func fanOut[T any](
	ctx context.Context,
	nodes []*Redis,
	call func(context.Context, *Redis) (T, error),
	done decided[T],
) []result[T] {
	type reply struct {
		node int
		result[T]
	}
	replies := make(chan reply, len(nodes))
	ctx = context.WithoutCancel(ctx) // if ctx ends, nodes complete the call
	for i, node := range nodes {
		go func() {
			value, err := call(ctx, node)
			replies <- reply{i, result[T]{value, err}}
		}()
	}

	results := make([]result[T], len(nodes))
	for i := range results {
		results[i].err = errNoReply
	}
	var graceOver <-chan time.Time
	for pending := len(nodes); pending > 0; pending-- {
		if graceOver == nil && done(results, pending) {
			graceOver = time.After(stragglerGrace)
		}
		select {
		case r := <-replies:
			results[r.node] = r.result
		case <-graceOver:
			return results
		}
	}
	return results
}

// majority returns the size of a majority of the nodes.
func majority(nodes int) int { return nodes/2 + 1 }

// majorityOf returns a function that reports whether a majority of the nodes succeeded, or can no
// longer succeed.
func majorityOf[T any](succeeded func(T) bool) decided[T] {
	return func(results []result[T], pending int) bool {
		n := count(results, succeeded)
		return n >= majority(len(results)) || n+pending < majority(len(results))
	}
}

// anyValue accepts every value: a call without an error is a success.
func anyValue[T any](T) bool { return true }

// count returns the number of results without an error for whose value the function accept returns
// true.
func count[T any](results []result[T], accept func(T) bool) int {
	n := 0
	for _, r := range results {
		if r.err == nil && accept(r.value) {
			n++
		}
	}
	return n
}

// majorityError returns nil if a majority succeeded, ErrNotHeld if so many nodes refused that no
// majority can hold the lock, and a store_unavailable error otherwise. The reason of ErrNotHeld is
// HeldByOther if any node replied with HeldByOther.
func majorityError[T any](results []result[T]) error {
	if count(results, anyValue) >= majority(len(results)) {
		return nil
	}

	refusals := 0
	var refusal error
	for _, r := range results {
		if !errors.Is(r.err, ErrNotHeld) {
			continue
		}
		refusals++
		if refusal == nil || ReasonOf(r.err) == HeldByOther {
			refusal = r.err
		}
	}
	if refusals > len(results)-majority(len(results)) {
		return refusal
	}
	return fault.Unavailable("redis quorum", joinErrors(results))
}

// joinErrors joins the errors of the nodes, for the log.
func joinErrors[T any](results []result[T]) error {
	var errs []error
	for i, r := range results {
		if r.err != nil {
			errs = append(errs, fmt.Errorf("node %d: %w", i+1, r.err))
		}
	}
	return errors.Join(errs...)
}
