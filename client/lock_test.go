package client_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/internal/fakeapi"
)

const (
	ttl = 9 * time.Second
	// drift is the time for clock drift that the client deducts from a lease with this TTL.
	drift = ttl/100 + 2*time.Millisecond
	lock  = "locks/report"
)

// bubble is a test on the clock of testing/synctest, with a client of an in-memory API. Time passes
// only while every goroutine waits, so that durations are exact. The test fails if a goroutine
// outlives it.
type bubble struct {
	*testing.T
	api *fakeapi.API
	c   *client.Client
}

func inBubble(t *testing.T, test func(bubble)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bubble{T: t, api: fakeapi.New()}
		var err error
		b.c, err = client.New(client.Config{Endpoint: "http://sluice.test", Auth: client.AuthNone,
			HTTPClient: &http.Client{Transport: b.api}})
		require.NoError(b, err)
		test(b)
		require.NoError(b, b.c.Close(context.Background()))
		b.api.Wait()
	})
}

func acquire(b bubble) *client.Lock {
	b.Helper()
	l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, Owner: "ann"})
	require.NoError(b, err)
	return l
}

// ended waits until the lock's context ends, and returns the elapsed time and the cause.
func ended(l *client.Lock) (after time.Duration, cause error) {
	started := time.Now()
	<-l.Context().Done()
	return time.Since(started), context.Cause(l.Context())
}

func TestLockRenewal(t *testing.T) {
	t.Run("renews after each third of the TTL", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			started := time.Now()
			l := acquire(b)
			require.Positive(b, l.Fence())
			require.GreaterOrEqual(b, len(l.Token()), 26, "128 random bits")
			pass(10*ttl + time.Second)
			require.NoError(b, l.Context().Err())
			require.NoError(b, l.Err())
			renewals := b.api.Requests("renew")
			require.Len(b, renewals, 30)
			for i, r := range renewals {
				require.Equal(b, time.Duration(i+1)*ttl/3, r.At.Sub(started))
			}
			require.NoError(b, l.Unlock(b.Context()))
			require.ErrorIs(b, context.Cause(l.Context()), client.ErrUnlocked)
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence, "the lock is free")
		})
	})

	t.Run("continues after failures", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, n int) fakeapi.Fault {
				if action == "renew" && n%4 != 3 {
					return [...]fakeapi.Fault{{Drop: true}, {Status: 503}, {Hang: true}}[n%4]
				}
				return fakeapi.Fault{}
			})
			l := acquire(b)
			pass(20 * ttl)
			require.NoError(b, l.Err())
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("repeats a renewal with the same token if the answer was lost", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, n int) fakeapi.Fault {
				return fakeapi.Fault{LoseAnswer: action == "renew" && n%2 == 0}
			})
			l := acquire(b)
			pass(5 * ttl)
			require.NoError(b, l.Err())
			for _, r := range b.api.Requests("renew") {
				require.Equal(b, l.Token(), r.Body["token"])
			}
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("never acquires an expired lock again", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			// The renewal takes longer than the lease, and arrives after the lock has expired.
			b.api.Inject(func(action string, _ int) fakeapi.Fault {
				if action == "renew" {
					return fakeapi.Fault{Before: ttl}
				}
				return fakeapi.Fault{}
			})
			l := acquire(b)
			after, cause := ended(l)
			require.ErrorIs(b, cause, client.ErrStoreUnreachable)
			require.Equal(b, ttl-drift, after)
			pass(3 * ttl)
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence, "the lock is free")
			require.Error(b, l.Err(), "a lost lock stays lost")
			require.Error(b, l.Unlock(b.Context()))
		})
	})

	t.Run("renews once more after the parent context has ended", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			ctx, cancel := context.WithCancel(b.Context())
			l, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: ttl})
			require.NoError(b, err)
			pass(ttl/3 + time.Second)
			cancel()
			require.ErrorIs(b, l.Context().Err(), context.Canceled)
			synctest.Wait()
			_, until := b.api.Holder(lock)
			require.Equal(b, ttl, time.Until(until), "the lease is renewed once, so that the cleanup has a full TTL")
			pass(3 * ttl)
			require.Equal(b, 2, b.api.Sent("renew"), "the lease is not renewed again")
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})
}

func TestLockContext(t *testing.T) {
	t.Run("reports why the lock was lost", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]struct {
			happens func(*fakeapi.API)
			cause   error
			notHeld bool
		}{
			"the store lost the lock":        {func(a *fakeapi.API) { a.Forget(lock) }, client.ErrExpired, true},
			"another holder has the lock":    {func(a *fakeapi.API) { a.Steal(lock) }, client.ErrStolen, true},
			"the lock was released by force": {func(a *fakeapi.API) { a.Force(lock) }, client.ErrForced, true},
			"the store is unavailable": {func(a *fakeapi.API) {
				a.Inject(always(fakeapi.Fault{Status: 503}))
			}, client.ErrStoreUnreachable, false},
			"the API is unreachable": {func(a *fakeapi.API) {
				a.Inject(always(fakeapi.Fault{Drop: true}))
			}, client.ErrStoreUnreachable, false},
			"the API does not answer": {func(a *fakeapi.API) {
				a.Inject(always(fakeapi.Fault{Hang: true}))
			}, client.ErrStoreUnreachable, false},
			"the credentials have expired": {func(a *fakeapi.API) {
				a.Inject(always(fakeapi.Fault{Status: 403}))
			}, client.ErrStoreUnreachable, false},
		} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(b bubble) {
					l := acquire(b)
					test.happens(b.api)
					after, cause := ended(l)
					require.ErrorIs(b, cause, test.cause)
					require.ErrorIs(b, l.Err(), test.cause)
					if test.notHeld {
						require.Equal(b, ttl/3, after, "the first renewal detects the loss")
					} else {
						require.Equal(b, ttl-drift, after,
							"renewals are retried until the lease ends")
					}
					for _, other := range []error{client.ErrExpired, client.ErrStolen, client.ErrForced,
						client.ErrStoreUnreachable, client.ErrUnlocked} {
						matches := errors.Is(cause, other)
						require.Equal(b, errors.Is(other, test.cause), matches, "%v is %v", cause, other)
					}
					sent := b.api.Sent("release")
					require.ErrorIs(b, l.Unlock(b.Context()), test.cause, "Unlock reports that the lock was lost")
					require.Equal(b, test.notHeld, b.api.Sent("release") == sent,
						"Unlock sends no release if the token does not hold the lock")
				})
			})
		}
	})

	t.Run("ends before the store grants the lock to another holder", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, n int) fakeapi.Fault {
				switch {
				case action == "renew" && n < 2:
					// the lease starts later at the store than in the client
					return fakeapi.Fault{Before: 200 * time.Millisecond, After: 300 * time.Millisecond}
				case action == "renew":
					return fakeapi.Fault{Drop: true}
				}
				return fakeapi.Fault{}
			})
			l := acquire(b)
			<-l.Context().Done()
			_, until := b.api.Holder(lock)
			left := time.Until(until)
			require.Positive(b, left, "the store still refuses other holders")
			require.Less(b, left, time.Second)
		})
	})

	t.Run("ends before the lease, by the time in Margin", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, Margin: 2 * time.Second})
			require.NoError(b, err)
			pass(3 * ttl) // Margin has no effect on a lease that is renewed
			require.NoError(b, l.Err())
			b.api.Inject(always(fakeapi.Fault{Drop: true}))
			<-l.Context().Done()
			require.Equal(b, 2*time.Second, time.Until(l.ValidUntil()))
		})
	})

	t.Run("ends after MaxHold, and the renewal stops", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, MaxHold: time.Minute})
			require.NoError(b, err)
			after, cause := ended(l)
			require.ErrorIs(b, cause, client.ErrMaxHold)
			require.Equal(b, time.Minute, after)
			sent := b.api.Sent("renew")
			pass(2 * ttl)
			require.Equal(b, sent, b.api.Sent("renew"))
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence, "the lease has expired")
		})
	})
}

func always(f fakeapi.Fault) func(string, int) fakeapi.Fault {
	return func(string, int) fakeapi.Fault { return f }
}

func TestLockValidUntil(t *testing.T) {
	t.Run("is measured from the start of the request", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(always(fakeapi.Fault{Before: time.Second, After: time.Second}))
			started := time.Now()
			l := acquire(b)
			require.Equal(b, 2*time.Second, time.Since(started))
			require.Equal(b, ttl-drift, l.ValidUntil().Sub(started))
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("is a full TTL away after a long wait", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			first := acquire(b)
			go func() {
				pass(15 * time.Second) // longer than a TTL
				_ = first.Unlock(context.Background())
			}()
			l := acquire(b)
			require.InDelta(b, (ttl - drift).Seconds(), time.Until(l.ValidUntil()).Seconds(), 0.01)
			require.Greater(b, l.Fence(), first.Fence())
			require.NoError(b, l.Unlock(b.Context()))
		})
	})
}
