package fence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client/fence"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Run("refuses a holder after a later holder", func(t *testing.T) {
		t.Parallel()
		ctx, guard := t.Context(), fence.New(nil)
		require.NoError(t, guard.Check(ctx, "account", 7))
		require.NoError(t, guard.Check(ctx, "account", 7), "a holder may use the resource repeatedly")
		require.NoError(t, guard.Check(ctx, "account", 9))

		err := guard.Check(ctx, "account", 7)
		require.ErrorIs(t, err, fence.ErrStale)
		var stale *fence.StaleError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, fence.StaleError{Resource: "account", Fence: 7, Highest: 9}, *stale)
		require.EqualError(t, err, `the fence is stale: "account" was used with fence 7 after fence 9`)

		require.NoError(t, guard.Check(ctx, "another account", 7), "each resource has its own fence")
		require.NoError(t, guard.Check(ctx, "account", 9), "a refusal changes nothing")
	})

	t.Run("refuses a fence that is not positive", func(t *testing.T) {
		t.Parallel()
		guard := fence.New(nil)
		for _, n := range []int64{0, -1} {
			require.ErrorIs(t, guard.Check(t.Context(), "account", n), fence.ErrInvalid)
		}
	})

	t.Run("refuses every fence if the store fails", func(t *testing.T) {
		t.Parallel()
		cause := errors.New("connection refused")
		err := fence.New(broken{cause}).Check(t.Context(), "account", 1)
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, fence.ErrStale)
	})

	t.Run("accepts exactly the fences that are not below the highest", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 0))
			guard, highest := fence.New(nil), map[string]int64{}
			for range 30 {
				resource, n := []string{"a", "b"}[random.IntN(2)], random.Int64N(20)+1
				err := guard.Check(t.Context(), resource, n)
				require.Equal(t, n >= highest[resource], err == nil,
					"seed %d: %d after %d on %s: %v", seed, n, highest[resource], resource, err)
				highest[resource] = max(highest[resource], n)
			}
		}
	})

	t.Run("is safe for concurrent use", func(t *testing.T) {
		t.Parallel()
		guard := fence.New(nil)
		var wait sync.WaitGroup
		for n := range int64(64) {
			wait.Go(func() { _ = guard.Check(context.Background(), "account", n+1) })
		}
		wait.Wait()
		require.ErrorIs(t, guard.Check(t.Context(), "account", 63), fence.ErrStale)
		require.NoError(t, guard.Check(t.Context(), "account", 64))
	})
}

// broken is a Store that fails.
type broken struct{ err error }

func (b broken) Raise(context.Context, string, int64) (int64, error) { return 0, b.err }
