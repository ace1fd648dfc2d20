package ticker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/ticker"
)

func TestInvocationsComeOnTimeAlsoWhileOthersAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		started := time.Now()
		tick := ticker.Start(time.Minute, func(ctx context.Context) error {
			at = append(at, time.Since(started))
			select { // each takes longer than the interval
			case <-ctx.Done():
			case <-time.After(90 * time.Second):
			}
			return nil
		}, func(err error) { t.Error(err) })
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, at)
		tick.Stop()
	})
}

func TestAFailedInvocationIsReportedAndDoesNotEndTheTicker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boom, failures := errors.New("boom"), 0
		tick := ticker.Start(time.Minute, func(context.Context) error { return boom }, func(err error) {
			require.ErrorIs(t, err, boom)
			failures++
		})
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 3, failures)
		tick.Stop()
	})
}

func TestStopEndsInvocationsThatAreUnderWayWithoutAComplaint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tick := ticker.Start(time.Minute, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, func(err error) { t.Error(err) })
		synctest.Wait()
		tick.Stop()
	})
}
