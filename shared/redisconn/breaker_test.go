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

// These tests run on a fake clock. docs/decisions/0001 describes the breaker.

var errUnavailable = fault.Unavailable("redis", errors.New("connection refused"))

// opened returns a breaker that three failures have opened, and the number of its pings.
func opened(ctx context.Context, ping func(context.Context) error) (*breaker, *atomic.Int32) {
	var pings atomic.Int32
	b := newBreaker(BreakerConfig{}, 250*time.Millisecond, func(ctx context.Context) error {
		pings.Add(1)
		return ping(ctx)
	})
	for range 3 {
		b.record(ctx, errUnavailable)
	}
	return b, &pings
}

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestBreaker(t *testing.T) {
	t.Parallel()
	t.Run("opens after three consecutive failures", func(t *testing.T) {
		t.Parallel()
		b := newBreaker(BreakerConfig{}, time.Second, hang)
		for range 10 { // any answer of the store resets the count
			b.record(t.Context(), errUnavailable)
			b.record(t.Context(), errUnavailable)
			b.record(t.Context(), errors.New("WRONGTYPE"))
		}
		require.NoError(t, b.admit(t.Context()))
		b.record(t.Context(), errUnavailable)
		b.record(t.Context(), errUnavailable)
		require.False(t, b.isOpen())
		b.record(t.Context(), errUnavailable)
		require.True(t, b.isOpen())
		require.Equal(t, fault.StoreUnavailable, fault.CodeOf(b.admit(t.Context())))
	})

	t.Run("open: one call per 250 ms waits, for at most 40 ms", func(t *testing.T) {
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
	})

	t.Run("open: concurrent calls share one probe", func(t *testing.T) {
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
	})

	t.Run("answered probe: admits the call that started it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b, _ := opened(t.Context(), func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil })
			time.Sleep(250 * time.Millisecond)
			require.NoError(t, b.admit(t.Context()))
			require.False(t, b.isOpen())
		})
	})

	t.Run("late answer to a probe: closes the breaker", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b, _ := opened(t.Context(), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
			time.Sleep(250 * time.Millisecond)
			require.Error(t, b.admit(t.Context()))
			time.Sleep(time.Second)
			require.NoError(t, b.admit(t.Context()))
		})
	})

	t.Run("ended context: is not counted as a failure", func(t *testing.T) {
		t.Parallel()
		b := newBreaker(BreakerConfig{}, time.Second, hang)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			b.record(ended, errUnavailable)
		}
		require.NoError(t, b.admit(t.Context()))
	})
}
