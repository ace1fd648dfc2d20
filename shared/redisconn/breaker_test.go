package redisconn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
)

// The breaker on a clock of its own: see docs/decisions/0001-circuit-breaker.md.

var errAway = fault.Unavailable("redis", errors.New("away"))

// opened is a breaker that three failures have opened, and the pings that it made.
func opened(ctx context.Context, ping func(context.Context) error) (*breaker, *atomic.Int32) {
	var pings atomic.Int32
	b := newBreaker(BreakerConfig{}, 250*time.Millisecond, func(ctx context.Context) error {
		pings.Add(1)
		return ping(ctx)
	})
	for range 3 {
		b.record(ctx, errAway)
	}
	return b, &pings
}

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestThreeFailuresInARowOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBreaker(BreakerConfig{}, time.Second, hang)
	for range 10 { // a success in between starts the count afresh, and so does any answer of the store
		b.record(t.Context(), errAway)
		b.record(t.Context(), errAway)
		b.record(t.Context(), errors.New("WRONGTYPE"))
	}
	require.NoError(t, b.admit(t.Context()))
	b.record(t.Context(), errAway)
	b.record(t.Context(), errAway)
	require.False(t, b.isOpen())
	b.record(t.Context(), errAway)
	require.True(t, b.isOpen())
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(b.admit(t.Context())))
}

func TestWhileItIsOpenOnlyOneCallInAQuarterSecondWaitsAndNeverForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, pings := opened(t.Context(), hang)
		started := time.Now()
		waited := 0
		for time.Since(started) < 2*time.Second {
			before := time.Now()
			require.Error(t, b.admit(t.Context()))
			if took := time.Since(before); took > 0 {
				require.Equal(t, 40*time.Millisecond, took)
				waited++
			}
			time.Sleep(time.Millisecond)
		}
		require.InDelta(t, 7, waited, 1)
		require.EqualValues(t, waited, pings.Load())
		time.Sleep(time.Second) // the last ping ends
	})
}

func TestManyCallersMakeOneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, pings := opened(t.Context(), hang)
		time.Sleep(250 * time.Millisecond)
		for range 100 {
			go func() { _ = b.admit(context.Background()) }()
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 1, pings.Load())
	})
}

func TestTheCallWhosePingIsAnsweredGoesOnToTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := opened(t.Context(), func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil })
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, b.admit(t.Context()))
		require.False(t, b.isOpen())
	})
}

func TestAProbeThatIsAnsweredAfterItsCallerLeftClosesTheBreakerAllTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := opened(t.Context(), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
		time.Sleep(250 * time.Millisecond)
		require.Error(t, b.admit(t.Context()))
		time.Sleep(time.Second)
		require.NoError(t, b.admit(t.Context()))
	})
}

func TestACallersOwnEndCountsForNothing(t *testing.T) {
	t.Parallel()
	b := newBreaker(BreakerConfig{}, time.Second, hang)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		b.record(ended, errAway)
	}
	require.NoError(t, b.admit(t.Context()))
}
