package ticker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/ticker"
)

func TestTicker(t *testing.T) {
	t.Parallel()
	t.Run("invokes on time while earlier invocations are in flight", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var at []time.Duration
			started := time.Now()
			tick := ticker.Start(time.Minute, func(ctx context.Context) error {
				mu.Lock()
				at = append(at, time.Since(started))
				mu.Unlock()
				select { // each invocation takes longer than the interval
				case <-ctx.Done():
				case <-time.After(90 * time.Second):
				}
				return nil
			}, func(err error) { t.Error(err) })
			time.Sleep(3*time.Minute + time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, at)
			tick.Stop()
		})
	})

	t.Run("reports a failed invocation and continues", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			boom := errors.New("boom")
			var failures atomic.Int32
			tick := ticker.Start(time.Minute, func(context.Context) error { return boom }, func(err error) {
				require.ErrorIs(t, err, boom)
				failures.Add(1)
			})
			time.Sleep(2*time.Minute + time.Second)
			synctest.Wait()
			require.EqualValues(t, 3, failures.Load())
			tick.Stop()
		})
	})

	t.Run("Stop cancels the invocations in flight without an error", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			tick := ticker.Start(time.Minute, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}, func(err error) { t.Error(err) })
			synctest.Wait()
			tick.Stop()
		})
	})
}
