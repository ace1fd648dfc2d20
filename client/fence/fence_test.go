package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/client/fence"
)

func TestAnOlderHolderIsRefusedOnceALaterOneWasSeen(t *testing.T) {
	t.Parallel()
	ctx, guard := t.Context(), fence.New(nil)
	require.NoError(t, guard.Check(ctx, "account", 7))
	require.NoError(t, guard.Check(ctx, "account", 7), "a holder may work more than once")
	require.NoError(t, guard.Check(ctx, "account", 9))

	err := guard.Check(ctx, "account", 7)
	require.ErrorIs(t, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, fence.StaleError{Resource: "account", Fence: 7, Highest: 9}, *stale)
	require.EqualError(t, err, `the fence is stale: "account" was used with 7, and has seen 9`)

	require.NoError(t, guard.Check(ctx, "another account", 7), "each resource has a fence of its own")
	require.NoError(t, guard.Check(ctx, "account", 9), "a refusal changes nothing")
}

func TestWhatIsNoFenceIsRefused(t *testing.T) {
	t.Parallel()
	guard := fence.New(nil)
	for _, n := range []int64{0, -1} {
		require.ErrorIs(t, guard.Check(t.Context(), "account", n), fence.ErrInvalid)
	}
}

// broken is a Store that cannot be reached.
type broken struct{ err error }

func (b broken) Raise(context.Context, string, int64) (int64, error) { return 0, b.err }

func TestAStoreThatFailsLetsNobodyPass(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	err := fence.New(broken{cause}).Check(t.Context(), "account", 1)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, fence.ErrStale)
}

func TestAnySequenceOfFencesIsAdmittedExactlyWhenItIsNotBelowTheHighestBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		guard, highest := fence.New(nil), map[string]int64{}
		for _, n := range rapid.SliceOf(rapid.Int64Range(1, 20)).Draw(t, "fences") {
			resource := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "resource")
			err := guard.Check(t.Context(), resource, n)
			if (err == nil) != (n >= highest[resource]) {
				t.Fatalf("%d after %d on %s: %v", n, highest[resource], resource, err)
			}
			highest[resource] = max(highest[resource], n)
		}
	})
}

func TestManyAtOnceNeverPassBelowWhatWasSeenBefore(t *testing.T) {
	t.Parallel()
	guard := fence.New(nil)
	var wait sync.WaitGroup
	for n := range int64(64) {
		wait.Go(func() { _ = guard.Check(context.Background(), "account", n+1) })
	}
	wait.Wait()
	require.ErrorIs(t, guard.Check(t.Context(), "account", 63), fence.ErrStale)
	require.NoError(t, guard.Check(t.Context(), "account", 64))
}

func ExampleGuard_Check() {
	guard, ctx := fence.New(nil), context.Background()
	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first holder
	fmt.Println(guard.Check(ctx, "report.csv", 42)) // the next one, after the first was paused
	fmt.Println(guard.Check(ctx, "report.csv", 41)) // the first one wakes up
	// Output:
	// <nil>
	// <nil>
	// the fence is stale: "report.csv" was used with 41, and has seen 42
}
