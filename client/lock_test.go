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
	// drift is what the client takes off a lease of ttl.
	drift = ttl/100 + 2*time.Millisecond
	lock  = "locks/report"
)

// bubble is a test on the clock of testing/synctest, with a client of an API in memory. Time passes
// only while everything waits, so instants are exact, and a goroutine that outlives the test fails
// it.
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

func take(b bubble) *client.Lock {
	b.Helper()
	l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, Owner: "ann"})
	require.NoError(b, err)
	return l
}

// ended waits for the lock's context, and returns how long that took and its cause.
func ended(l *client.Lock) (after time.Duration, cause error) {
	started := time.Now()
	<-l.Context().Done()
	return time.Since(started), context.Cause(l.Context())
}

func TestALockIsRenewedEachThirdOfItsTTLForAsLongAsItIsHeld(t *testing.T) {
	inBubble(t, func(b bubble) {
		started := time.Now()
		l := take(b)
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
		require.Zero(b, fence, "it is free")
	})
}

func TestTheLocksContextSaysWhyItWasLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*fakeapi.API)
		cause   error
		notHeld bool
	}{
		"the store lost it":        {func(a *fakeapi.API) { a.Forget(lock) }, client.ErrExpired, true},
		"another holds it":         {func(a *fakeapi.API) { a.Steal(lock) }, client.ErrStolen, true},
		"it was released by force": {func(a *fakeapi.API) { a.Force(lock) }, client.ErrForced, true},
		"the store cannot be reached": {func(a *fakeapi.API) {
			a.Break(always(fakeapi.Fault{Status: 503}))
		}, client.ErrStoreUnreachable, false},
		"the API cannot be reached": {func(a *fakeapi.API) {
			a.Break(always(fakeapi.Fault{Drop: true}))
		}, client.ErrStoreUnreachable, false},
		"nobody answers": {func(a *fakeapi.API) {
			a.Break(always(fakeapi.Fault{Hang: true}))
		}, client.ErrStoreUnreachable, false},
		"the credentials have expired": {func(a *fakeapi.API) {
			a.Break(always(fakeapi.Fault{Status: 403}))
		}, client.ErrStoreUnreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				l := take(b)
				test.happens(b.api)
				after, cause := ended(l)
				require.ErrorIs(b, cause, test.cause)
				require.ErrorIs(b, l.Err(), test.cause)
				if test.notHeld {
					require.Equal(b, ttl/3, after, "the first renewal shows it")
				} else {
					require.Equal(b, ttl-drift, after,
						"renewals are tried again until the lease can no longer be trusted")
				}
				for _, other := range []error{client.ErrExpired, client.ErrStolen, client.ErrForced,
					client.ErrStoreUnreachable, client.ErrUnlocked} {
					require.Equal(b, errors.Is(other, test.cause), errors.Is(cause, other), "%v is %v", cause, other)
				}
				asked := b.api.Asked("release")
				require.ErrorIs(b, l.Unlock(b.Context()), test.cause, "who unlocks learns that the lock was lost")
				require.Equal(b, test.notHeld, b.api.Asked("release") == asked,
					"what surely holds nothing is not released")
			})
		})
	}
}

func always(f fakeapi.Fault) func(string, int) fakeapi.Fault {
	return func(string, int) fakeapi.Fault { return f }
}

func TestTheLostSignalComesBeforeTheStoreLetsAnotherIn(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, n int) fakeapi.Fault {
			switch {
			case action == "renew" && n < 2:
				// the lease at the store is counted from later
				return fakeapi.Fault{Before: 200 * time.Millisecond, After: 300 * time.Millisecond}
			case action == "renew":
				return fakeapi.Fault{Drop: true}
			}
			return fakeapi.Fault{}
		})
		l := take(b)
		<-l.Context().Done()
		_, until := b.api.Holder(lock)
		require.True(b, time.Now().Before(until), "the store still keeps others out for %s", time.Until(until))
		require.Less(b, time.Until(until), time.Second)
	})
}

func TestTheLeaseCountsFromTheStartOfItsRequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(always(fakeapi.Fault{Before: time.Second, After: time.Second}))
		started := time.Now()
		l := take(b)
		require.Equal(b, 2*time.Second, time.Since(started))
		require.Equal(b, ttl-drift, l.ValidUntil().Sub(started))
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestALeaseThatWasGrantedAfterALongWaitIsRenewedBeforeItIsHandedOut(t *testing.T) {
	inBubble(t, func(b bubble) {
		first := take(b)
		go func() {
			pass(15 * time.Second) // longer than a TTL
			_ = first.Unlock(context.Background())
		}()
		l := take(b)
		require.InDelta(b, (ttl - drift).Seconds(), time.Until(l.ValidUntil()).Seconds(), 0.01)
		require.Greater(b, l.Fence(), first.Fence())
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestOneFailedRenewalDoesNotEndRenewing(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, n int) fakeapi.Fault {
			if action == "renew" && n%4 != 3 {
				return [...]fakeapi.Fault{{Drop: true}, {Status: 503}, {Hang: true}}[n%4]
			}
			return fakeapi.Fault{}
		})
		l := take(b)
		pass(20 * ttl)
		require.NoError(b, l.Err())
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestARenewalWhoseAnswerWasLostIsRepeatedWithTheSameToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, n int) fakeapi.Fault {
			return fakeapi.Fault{Lose: action == "renew" && n%2 == 0}
		})
		l := take(b)
		pass(5 * ttl)
		require.NoError(b, l.Err())
		for _, r := range b.api.Requests("renew") {
			require.Equal(b, l.Token(), r.Body["token"])
		}
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestALateRenewalNeverTakesTheLockAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		// The renewal is under way for longer than the lease; it arrives when the store has let the
		// lock go.
		b.api.Break(func(action string, _ int) fakeapi.Fault {
			if action == "renew" {
				return fakeapi.Fault{Before: ttl}
			}
			return fakeapi.Fault{}
		})
		l := take(b)
		after, cause := ended(l)
		require.ErrorIs(b, cause, client.ErrStoreUnreachable)
		require.Equal(b, ttl-drift, after)
		pass(3 * ttl)
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence, "the lock is free")
		require.Error(b, l.Err(), "what is lost stays lost")
		require.Error(b, l.Unlock(b.Context()))
	})
}

func TestMarginEndsTheContextBeforeTheLease(t *testing.T) {
	inBubble(t, func(b bubble) {
		l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, Margin: 2 * time.Second})
		require.NoError(b, err)
		pass(3 * ttl) // renewed, it has no effect
		require.NoError(b, l.Err())
		b.api.Break(always(fakeapi.Fault{Drop: true}))
		<-l.Context().Done()
		require.Equal(b, 2*time.Second, time.Until(l.ValidUntil()))
	})
}

func TestMaxHoldEndsTheContextAndTheRenewal(t *testing.T) {
	inBubble(t, func(b bubble) {
		l, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: ttl, MaxHold: time.Minute})
		require.NoError(b, err)
		after, cause := ended(l)
		require.ErrorIs(b, cause, client.ErrMaxHold)
		require.Equal(b, time.Minute, after)
		asked := b.api.Asked("renew")
		pass(2 * ttl)
		require.Equal(b, asked, b.api.Asked("renew"))
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence, "its lease has run out")
	})
}

func TestALockThatNobodyUnlocksIsNotKeptBeyondItsContext(t *testing.T) {
	inBubble(t, func(b bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		l, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: ttl})
		require.NoError(b, err)
		pass(ttl/3 + time.Second)
		cancel()
		require.ErrorIs(b, l.Context().Err(), context.Canceled)
		synctest.Wait()
		_, until := b.api.Holder(lock)
		require.Equal(b, ttl, time.Until(until), "it is extended once, so that whoever cleans up has a full TTL")
		pass(3 * ttl)
		require.Equal(b, 2, b.api.Asked("renew"), "and then no more")
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}
