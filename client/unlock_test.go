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

func TestUnlock(t *testing.T) {
	t.Run("stops the renewal before it releases", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			// A renewal is running when the lock is unlocked.
			b.api.Inject(func(action string, _ int) fakeapi.Fault {
				if action == "renew" {
					return fakeapi.Fault{Hang: true}
				}
				return fakeapi.Fault{}
			})
			l := acquire(b)
			pass(ttl/3 + time.Second)
			require.Equal(b, 1, b.api.Sent("renew"))
			require.NoError(b, l.Unlock(b.Context()))
			released := time.Now()
			pass(5 * ttl)
			require.Equal(b, 1, b.api.Sent("renew"), "no renewal after the release")
			require.Equal(b, released, b.api.Requests("release")[0].At)
		})
	})

	t.Run("releases although the context has ended", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			ctx, cancel := context.WithCancel(b.Context())
			l, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: ttl})
			require.NoError(b, err)
			cancel()
			require.NoError(b, l.Unlock(ctx))
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})

	t.Run("repeats a release whose answer was lost", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, n int) fakeapi.Fault {
				return fakeapi.Fault{LoseAnswer: action == "release" && n == 0}
			})
			l := acquire(b)
			require.NoError(b, l.Unlock(b.Context()), "the lock was released, although the second answer is a refusal")
			require.Equal(b, 2, b.api.Sent("release"))
		})
	})

	t.Run("returns within a second if the lock was lost", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			b.api.Inject(always(fakeapi.Fault{Hang: true}))
			<-l.Context().Done()
			started := time.Now()
			require.ErrorIs(b, l.Unlock(b.Context()), client.ErrStoreUnreachable)
			require.LessOrEqual(b, time.Since(started), time.Second)
		})
		t.Run("after a renewal whose answer was lost", func(t *testing.T) {
			inBubble(t, func(b bubble) {
				l := acquire(b)
				b.api.Inject(func(action string, _ int) fakeapi.Fault {
					return fakeapi.Fault{LoseAnswer: action == "renew"}
				})
				<-l.Context().Done()
				fence, _ := b.api.Holder(lock)
				require.Equal(b, l.Fence(), fence, "the store still holds the lock")
				require.ErrorIs(b, l.Unlock(b.Context()), client.ErrStoreUnreachable)
				fence, _ = b.api.Holder(lock)
				require.Zero(b, fence)
			})
		})
	})

	t.Run("has no effect the second time", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			require.NoError(b, l.Unlock(b.Context()))
			require.NoError(b, l.Unlock(b.Context()))
			require.Equal(b, 1, b.api.Sent("release"))
		})
	})

	t.Run("can be repeated after the store was unavailable", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			b.api.Inject(always(fakeapi.Fault{Status: 503}))
			started := time.Now()
			err := l.Unlock(b.Context())
			require.ErrorIs(b, err, client.ErrStoreUnavailable)
			require.LessOrEqual(b, time.Since(started), 10*time.Second)
			require.ErrorIs(b, context.Cause(l.Context()), client.ErrUnlocked, "the context ends despite the failure")
			b.api.Inject(nil)
			if time.Now().Before(l.ValidUntil()) {
				require.NoError(b, l.Unlock(b.Context()))
			}
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})

	t.Run("reports that the lock was lost", func(t *testing.T) {
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
					l := acquire(b)
					test.happens(b.api) // before a renewal detects the loss
					err := l.Unlock(b.Context())
					require.ErrorIs(b, err, client.ErrLockNotHeld)
					require.ErrorIs(b, err, test.cause)
					require.ErrorIs(b, l.Err(), test.cause)
					require.ErrorIs(b, l.Unlock(b.Context()), test.cause)
				})
			})
		}
	})

	t.Run("reports the forced release that ended the work", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
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
	})

	t.Run("waits for a renewal that cannot be canceled", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			c, err := client.New(client.Config{
				Endpoint: "http://sluice.test", Auth: client.AuthNone,
				HTTPClient: &http.Client{Transport: slowTransport{api: b.api, delay: time.Second}},
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
	})

	t.Run("reports a lease that expired while a renewal hung", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			c, err := client.New(client.Config{
				Endpoint: "http://sluice.test", Auth: client.AuthNone,
				HTTPClient: &http.Client{Transport: slowTransport{api: b.api, delay: time.Hour}},
			})
			require.NoError(b, err)
			l, err := c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl})
			require.NoError(b, err)
			after, cause := ended(l)
			require.Equal(b, ttl-drift, after)
			require.ErrorIs(b, cause, client.ErrExpired)
			require.ErrorIs(b, l.Unlock(b.Context()), client.ErrExpired)
		})
	})
}

func TestResume(t *testing.T) {
	t.Run("continues to hold a detached lock", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			first := acquire(b)
			pass(ttl / 2)
			token, err := first.Detach()
			require.NoError(b, err)
			require.ErrorIs(b, context.Cause(first.Context()), client.ErrDetached)
			require.NoError(b, first.Unlock(b.Context()), "a detached lock is not released")
			require.Zero(b, b.api.Sent("release"))

			second, err := b.c.Resume(b.Context(), "report", token, client.LockOptions{TTL: ttl})
			require.NoError(b, err)
			require.Equal(b, first.Fence(), second.Fence())
			pass(3 * ttl)
			require.NoError(b, second.Err(), "the new holder renews the lease")
			require.NoError(b, second.Unlock(b.Context()))
		})
	})

	t.Run("refuses an expired lock", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			token, err := acquire(b).Detach()
			require.NoError(b, err)
			pass(ttl)
			_, err = b.c.Resume(b.Context(), "report", token, client.LockOptions{TTL: ttl})
			require.ErrorIs(b, err, client.ErrExpired)
			_, err = b.c.Resume(b.Context(), "report", "", client.LockOptions{})
			require.ErrorIs(b, err, client.ErrInvalidRequest)
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})
}

// pass waits for d on the clock of testing/synctest.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // not the real clock

// slowTransport delays each renewal, and then sends it even if the context of the request has
// ended.
type slowTransport struct {
	api   *fakeapi.API
	delay time.Duration
}

func (s slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/renew") {
		pass(s.delay)
		return s.api.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	}
	return s.api.RoundTrip(r)
}
