package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/lock"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	t.Run("ErrHeld matches by code, also when wrapped or joined", func(t *testing.T) {
		t.Parallel()
		held := lock.Held(lock.Lock, lock.Conflict{Holder: "ann", Remaining: time.Second})
		for _, err := range []error{held, fmt.Errorf("no report: %w", held), errors.Join(held, context.Canceled)} {
			require.ErrorIs(t, err, lock.ErrHeld)
			require.NotErrorIs(t, err, lock.ErrNotHeld)
			require.Equal(t, "ann", lock.HolderOf(err))
			require.Empty(t, lock.ReasonOf(err))
		}
	})

	t.Run("ErrNotHeld matches by code and has the reason", func(t *testing.T) {
		t.Parallel()
		for _, reason := range []lock.Reason{lock.Expired, lock.HeldByOther, lock.Forced} {
			err := fmt.Errorf("no report: %w", lock.NotHeld(reason))
			require.ErrorIs(t, err, lock.ErrNotHeld)
			require.NotErrorIs(t, err, lock.ErrHeld)
			require.Equal(t, reason, lock.ReasonOf(err))
			require.Empty(t, lock.HolderOf(err))
		}
	})

	t.Run("other errors have no reason and no holder", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, lock.ReasonOf(context.Canceled))
		require.Empty(t, lock.HolderOf(nil))
	})
}
