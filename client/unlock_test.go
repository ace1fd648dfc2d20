package client_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/internal/fakeapi"
)

func TestUnlockStopsTheRenewalBeforeItReleases(t *testing.T) {
	inBubble(t, func(b bubble) {
		// A renewal is under way when the lock is unlocked.
		b.api.Break(func(action string, _ int) fakeapi.Fault {
			if action == "renew" {
				return fakeapi.Fault{Hang: true}
			}
			return fakeapi.Fault{}
		})
		l := take(b)
		pass(ttl/3 + time.Second)
		require.Equal(b, 1, b.api.Asked("renew"))
		require.NoError(b, l.Unlock(b.Context()))
		released := time.Now()
		pass(5 * ttl)
		require.Equal(b, 1, b.api.Asked("renew"), "no renewal after the release")
		require.Equal(b, released, b.api.Requests("release")[0].At)
	})
}

func TestUnlockReleasesAlthoughTheRequestsContextHasEnded(t *testing.T) {
	inBubble(t, func(b bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		l, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: ttl})
		require.NoError(b, err)
		cancel()
		require.NoError(b, l.Unlock(ctx))
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}

func TestAReleaseWhoseAnswerWasLostIsRepeatedAndSucceeds(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, n int) fakeapi.Fault {
			return fakeapi.Fault{Lose: action == "release" && n == 0}
		})
		l := take(b)
		require.NoError(b, l.Unlock(b.Context()), "the lock was released, whatever the second answer says")
		require.Equal(b, 2, b.api.Asked("release"))
	})
}

func TestALostLockIsGivenBackQuicklyOrNotAtAll(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		b.api.Break(always(fakeapi.Fault{Hang: true}))
		<-l.Context().Done()
		started := time.Now()
		require.ErrorIs(b, l.Unlock(b.Context()), client.ErrStoreUnreachable)
		require.LessOrEqual(b, time.Since(started), time.Second)
	})
	t.Run("after a renewal whose answer was lost", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := take(b)
			b.api.Break(func(action string, _ int) fakeapi.Fault { return fakeapi.Fault{Lose: action == "renew"} })
			<-l.Context().Done()
			fence, _ := b.api.Holder(lock)
			require.Equal(b, l.Fence(), fence, "the store keeps it")
			require.ErrorIs(b, l.Unlock(b.Context()), client.ErrStoreUnreachable)
			fence, _ = b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})
}

func TestUnlockTwiceIsUnlockOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		require.NoError(b, l.Unlock(b.Context()))
		require.NoError(b, l.Unlock(b.Context()))
		require.Equal(b, 1, b.api.Asked("release"))
	})
}

func TestUnlockCanBeTriedAgainWhenTheAPIWasAway(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		b.api.Break(always(fakeapi.Fault{Status: 503}))
		started := time.Now()
		err := l.Unlock(b.Context())
		require.ErrorIs(b, err, client.ErrStoreUnavailable)
		require.LessOrEqual(b, time.Since(started), 10*time.Second)
		require.ErrorIs(b, context.Cause(l.Context()), client.ErrUnlocked, "the work must have stopped all the same")
		b.api.Break(nil)
		if time.Now().Before(l.ValidUntil()) {
			require.NoError(b, l.Unlock(b.Context()))
		}
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}

func TestUnlockTellsThatTheLockWasNotHeldAnyMore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*fakeapi.API)
		cause   error
	}{
		"expired":       {func(a *fakeapi.API) { a.Forget(lock) }, client.ErrExpired},
		"held by other": {func(a *fakeapi.API) { a.Steal(lock) }, client.ErrStolen},
		"forced":        {func(a *fakeapi.API) { a.Force(lock) }, client.ErrForced},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				l := take(b)
				test.happens(b.api) // and no renewal has shown it yet
				err := l.Unlock(b.Context())
				require.ErrorIs(b, err, client.ErrLockNotHeld)
				require.ErrorIs(b, err, test.cause)
				require.ErrorIs(b, l.Err(), test.cause)
				require.ErrorIs(b, l.Unlock(b.Context()), test.cause)
			})
		})
	}
}

func TestALockIsHandedOverByItsToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		first := take(b)
		pass(ttl / 2)
		token, err := first.Detach()
		require.NoError(b, err)
		require.ErrorIs(b, context.Cause(first.Context()), client.ErrDetached)
		require.NoError(b, first.Unlock(b.Context()), "what was handed over is not released")
		require.Zero(b, b.api.Asked("release"))

		second, err := b.c.Resume(b.Context(), "report", token, client.LockOptions{TTL: ttl})
		require.NoError(b, err)
		require.Equal(b, first.Fence(), second.Fence())
		pass(3 * ttl)
		require.NoError(b, second.Err(), "it is renewed by its new holder")
		require.NoError(b, second.Unlock(b.Context()))
	})
}

func TestResumeNeverTakesALockThatHasExpired(t *testing.T) {
	inBubble(t, func(b bubble) {
		token, err := take(b).Detach()
		require.NoError(b, err)
		pass(ttl)
		_, err = b.c.Resume(b.Context(), "report", token, client.LockOptions{TTL: ttl})
		require.ErrorIs(b, err, client.ErrExpired)
		_, err = b.c.Resume(b.Context(), "report", "", client.LockOptions{})
		require.ErrorIs(b, err, client.ErrInvalidRequest)
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}

func TestWorkUnderTheLockEndsWithIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		stopped := make(chan time.Duration)
		started := time.Now()
		go func() {
			<-l.Context().Done()
			stopped <- time.Since(started)
		}()
		synctest.Wait()
		b.api.Force(lock)
		require.Equal(b, ttl/3, <-stopped)
		require.ErrorIs(b, l.Unlock(b.Context()), client.ErrForced)
	})
}

// pass lets time pass in a bubble, where it is not real.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the clock of testing/synctest

// stubborn is a transport that keeps a renewal to itself for a while, whatever becomes of its
// context, and then sends it.
type stubborn struct {
	api  *fakeapi.API
	held time.Duration
}

func (s stubborn) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/renew") {
		pass(s.held)
		return s.api.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	}
	return s.api.RoundTrip(r)
}

func TestUnlockWaitsForARenewalThatCannotBeCalledBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, err := client.New(client.Config{
			Endpoint: "http://sluice.test", Auth: client.AuthNone,
			HTTPClient: &http.Client{Transport: stubborn{api: b.api, held: time.Second}},
		})
		require.NoError(b, err)
		l, err := c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl})
		require.NoError(b, err)
		pass(ttl/3 + time.Millisecond)
		require.NoError(b, l.Unlock(b.Context()))
		var order []string
		for _, r := range b.api.Requests("") {
			order = append(order, r.Action)
		}
		require.Equal(b, []string{"acquire", "renew", "release"}, order)
	})
}

func TestTheLostSignalComesInTimeAlthoughARenewalIsStuck(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, err := client.New(client.Config{
			Endpoint: "http://sluice.test", Auth: client.AuthNone,
			HTTPClient: &http.Client{Transport: stubborn{api: b.api, held: time.Hour}},
		})
		require.NoError(b, err)
		l, err := c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl})
		require.NoError(b, err)
		after, cause := ended(l)
		require.Equal(b, ttl-drift, after)
		require.ErrorIs(b, cause, client.ErrExpired)
		require.ErrorIs(b, l.Unlock(b.Context()), client.ErrExpired)
	})
}
