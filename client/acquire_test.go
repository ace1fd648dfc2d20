package client_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/client/internal/fakeapi"
)

func TestAnAcquireWhoseAnswerWasLostIsRepeatedWithTheSameToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, n int) fakeapi.Fault {
			return fakeapi.Fault{Lose: action == "acquire" && n < 2}
		})
		for _, acquire := range []func(context.Context, string, client.LockOptions) (*client.Lock, error){b.c.TryLock,
			b.c.Lock} {
			l, err := acquire(b.Context(), "report", client.LockOptions{TTL: ttl})
			require.NoError(b, err, "it is not refused because it holds the lock itself")
			require.NoError(b, l.Unlock(b.Context()))
		}
		asked := b.api.Requests("acquire")
		require.Len(b, asked, 4)
		require.Equal(b, asked[0].Body["token"], asked[1].Body["token"])
		require.Equal(b, asked[0].Body["token"], asked[2].Body["token"])
		require.NotEqual(b, asked[0].Body["token"], asked[3].Body["token"], "another lock has another token")
	})
}

func TestALockThatIsHeldIsRefusedWithItsHolder(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		started := time.Now()
		_, err := b.c.TryLock(b.Context(), "report", client.LockOptions{})
		require.Equal(b, started, time.Now(), "at once")
		require.ErrorIs(b, err, client.ErrLockHeld)
		var e *client.Error
		require.ErrorAs(b, err, &e)
		require.Equal(b, "ann", e.Holder)
		require.Equal(b, ttl, e.RetryAfter, "the holder's remaining lease")
		require.Equal(b, http.StatusConflict, e.Status)
		require.Equal(b, "req-1", e.RequestID)
		require.EqualError(b, err, `error acquiring the lock "report": lock_held (ann, for another 9s)`)
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestWaitEndsWithWhoHoldsTheLock(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		started := time.Now()
		_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: 50 * time.Second})
		require.Equal(b, 50*time.Second, time.Since(started))
		require.ErrorIs(b, err, client.ErrLockHeld)
		require.NotErrorIs(b, err, context.DeadlineExceeded)
		asked := b.api.Requests("acquire")[1:]
		require.Len(b, asked, 3, "no request waits for more than 20 s, and none is in vain")
		for i, wait := range []float64{20_000, 20_000, 10_000} {
			require.Equal(b, wait, asked[i].Body["wait_ms"]) //nolint:testifylint // whole numbers
			require.Equal(b, asked[0].Body["token"], asked[i].Body["token"])
		}
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestAContextThatEndsTheWaitIsJoinedWithWhoHoldsTheLock(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
		defer cancel()
		started := time.Now()
		_, err := b.c.Lock(ctx, "report", client.LockOptions{})
		require.Equal(b, 30*time.Second, time.Since(started))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorIs(b, err, client.ErrLockHeld)
		require.NoError(b, l.Unlock(b.Context()))
		pass(time.Minute)
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence, "nothing is left behind")
	})
}

func TestAContextThatEndsInTheMiddleOfAWaitLeavesNoLockBehind(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		ctx, cancel := context.WithCancel(b.Context())
		go func() {
			pass(5 * time.Second)
			cancel()
		}()
		started := time.Now()
		_, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: time.Hour})
		require.ErrorIs(b, err, context.Canceled)
		require.Equal(b, 5*time.Second, time.Since(started), "who cancels is answered at once")

		// The request still waits at the other end, and is granted the lock when it becomes free.
		require.NoError(b, l.Unlock(b.Context()))
		require.NoError(b, b.c.Close(b.Context()))
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence, "it was given back")
		require.Len(b, b.api.Requests("release"), 2)
	})
}

func TestADeadlineIsObeyedAlthoughTheAPIIsSlowAndNoLockIsLeftBehind(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(always(fakeapi.Fault{Before: 200 * time.Millisecond, After: 200 * time.Millisecond}))
		ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
		defer cancel()
		started := time.Now()
		_, err := b.c.TryLock(ctx, "report", client.LockOptions{TTL: time.Hour})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Equal(b, 50*time.Millisecond, time.Since(started), "success after the deadline would be a lie")
		require.NoError(b, b.c.Close(b.Context()))
		require.Len(b, b.api.Requests("acquire"), 1)
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}

func TestACallThatFailsForGoodGivesBackWhatItMayHaveGot(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(action string, _ int) fakeapi.Fault { return fakeapi.Fault{Lose: action == "acquire"} })
		_, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: time.Hour})
		require.ErrorIs(b, err, client.ErrUnreachable)
		require.ErrorIs(b, err, fakeapi.ErrCut)
		require.Equal(b, 4, b.api.Asked("acquire"), "one attempt and three more")
		require.NoError(b, b.c.Close(b.Context()))
		fence, _ := b.api.Holder(lock)
		require.Zero(b, fence)
	})
}

func TestATokenOfTheCallersOwnIsNotReleasedByACallThatWasAbandoned(t *testing.T) {
	inBubble(t, func(b bubble) {
		o := client.LockOptions{TTL: time.Hour, Token: "my-own-token-for-this"}
		l, err := b.c.Lock(b.Context(), "report", o)
		require.NoError(b, err)
		b.api.Break(always(fakeapi.Fault{After: time.Second}))
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = b.c.Lock(ctx, "report", o)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NoError(b, b.c.Close(b.Context()))
		fence, _ := b.api.Holder(lock)
		require.Equal(b, l.Fence(), fence, "the lock is still held by whoever took it first")
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestTryLockFailsAtOnceWhenTheStoreIsAway(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(always(fakeapi.Fault{Status: 503}))
		started := time.Now()
		_, err := b.c.TryLock(b.Context(), "report", client.LockOptions{})
		require.ErrorIs(b, err, client.ErrStoreUnavailable)
		require.Equal(b, started, time.Now())
		require.Equal(b, 1, b.api.Asked("acquire"))
	})
}

func TestLockOutlivesAShortOutageButNotALongOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.api.Break(func(_ string, n int) fakeapi.Fault {
			if n < 3 {
				return fakeapi.Fault{Status: 503}
			}
			return fakeapi.Fault{}
		})
		started := time.Now()
		l := take(b)
		require.GreaterOrEqual(b, time.Since(started), 3*time.Second, "Retry-After is obeyed")
		require.NoError(b, l.Unlock(b.Context()))

		b.api.Break(always(fakeapi.Fault{Status: 503}))
		started, asked := time.Now(), b.api.Asked("acquire")
		_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: time.Hour})
		require.ErrorIs(b, err, client.ErrStoreUnavailable)
		require.Less(b, time.Since(started), 10*time.Second)
		require.Equal(b, 4, b.api.Asked("acquire")-asked)
	})
}

func TestWaitersDoNotSpinWhenTheAPIRefusesTooSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := take(b)
		b.api.Break(func(action string, _ int) fakeapi.Fault { return fakeapi.Fault{Hurry: action == "acquire"} })
		asked := b.api.Asked("acquire")
		_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: 10 * time.Second})
		require.ErrorIs(b, err, client.ErrLockHeld)
		require.LessOrEqual(b, b.api.Asked("acquire")-asked, 110)
		require.NoError(b, l.Unlock(b.Context()))
	})
}

func TestASemaphoreAdmitsItsCapacity(t *testing.T) {
	inBubble(t, func(b bubble) {
		s := b.c.Semaphore("pool", 2)
		var held []*client.Lock
		for n := range 2 {
			l, err := s.Acquire(b.Context(), client.LockOptions{TTL: ttl})
			require.NoError(b, err)
			require.Equal(b, n+1, l.InUse())
			held = append(held, l)
		}
		_, err := s.TryAcquire(b.Context(), client.LockOptions{})
		require.ErrorIs(b, err, client.ErrLockHeld)
		pass(3 * ttl)
		for _, l := range held {
			require.NoError(b, l.Err(), "permits are renewed")
			require.NoError(b, l.Unlock(b.Context()))
		}
		_, err = b.c.Semaphore("pool", 0).Acquire(b.Context(), client.LockOptions{})
		require.ErrorIs(b, err, client.ErrInvalidRequest)
	})
}

func TestInputThatMakesNoSenseIsRefusedBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, func(b bubble) {
		for name, test := range map[string]struct {
			name  string
			o     client.LockOptions
			field string
		}{
			"no name":                {"", client.LockOptions{}, "name"},
			"a name that is a path":  {"../policies", client.LockOptions{}, "name"},
			"less than no TTL":       {"report", client.LockOptions{TTL: -time.Second}, "ttl_ms"},
			"a TTL under 1 ms":       {"report", client.LockOptions{TTL: time.Microsecond}, "ttl_ms"},
			"a negative wait":        {"report", client.LockOptions{Wait: -1}, "wait"},
			"a margin over half TTL": {"report", client.LockOptions{TTL: ttl, Margin: ttl}, "margin"},
			"a negative MaxHold":     {"report", client.LockOptions{MaxHold: -1}, "max_hold"},
		} {
			_, err := b.c.Lock(b.Context(), test.name, test.o)
			var e *client.Error
			require.ErrorAs(b, err, &e, name)
			require.ErrorIs(b, err, client.ErrInvalidRequest, name)
			require.Equal(b, test.field, e.Fields[0].Field, name)
		}
		require.Zero(b, b.api.Asked("acquire"))
	})
}
