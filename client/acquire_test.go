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

func TestLock(t *testing.T) {
	t.Run("repeats a request with the same token after a lost answer", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, n int) fakeapi.Fault {
				return fakeapi.Fault{LoseAnswer: action == "acquire" && n < 2}
			})
			type method func(context.Context, string, client.LockOptions) (*client.Lock, error)
			for _, acquire := range []method{b.c.TryLock, b.c.Lock} {
				l, err := acquire(b.Context(), "report", client.LockOptions{TTL: ttl})
				require.NoError(b, err, "a retry with the same token is not refused")
				require.NoError(b, l.Unlock(b.Context()))
			}
			sent := b.api.Requests("acquire")
			require.Len(b, sent, 4)
			require.Equal(b, sent[0].Body["token"], sent[1].Body["token"])
			require.Equal(b, sent[0].Body["token"], sent[2].Body["token"])
			require.NotEqual(b, sent[0].Body["token"], sent[3].Body["token"], "a new call has a new token")
		})
	})

	t.Run("reports the holder when Wait has passed", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			started := time.Now()
			_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: 50 * time.Second})
			require.Equal(b, 50*time.Second, time.Since(started))
			require.ErrorIs(b, err, client.ErrLockHeld)
			require.NotErrorIs(b, err, context.DeadlineExceeded)
			sent := b.api.Requests("acquire")[1:]
			require.Len(b, sent, 3, "each request waits up to 20 s, the last request for the remaining 10 s")
			for i, wait := range []float64{20_000, 20_000, 10_000} {
				require.Equal(b, wait, sent[i].Body["wait_ms"]) //nolint:testifylint // whole numbers
				require.Equal(b, sent[0].Body["token"], sent[i].Body["token"])
			}
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("reports the holder and the error of the context", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
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
			require.Zero(b, fence, "the lock is free")
		})
	})

	t.Run("releases a lock that was granted after the cancellation", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			ctx, cancel := context.WithCancel(b.Context())
			go func() {
				pass(5 * time.Second)
				cancel()
			}()
			started := time.Now()
			_, err := b.c.Lock(ctx, "report", client.LockOptions{TTL: time.Hour})
			require.ErrorIs(b, err, context.Canceled)
			require.Equal(b, 5*time.Second, time.Since(started), "Lock returns immediately after the cancellation")

			// The request continues at the API, which grants it the lock when the lock becomes
			// free.
			require.NoError(b, l.Unlock(b.Context()))
			require.NoError(b, b.c.Close(b.Context()))
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence, "the client has released the lock")
			require.Len(b, b.api.Requests("release"), 2)
		})
	})

	t.Run("after a failure, releases a lock that the API may have granted", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(action string, _ int) fakeapi.Fault {
				return fakeapi.Fault{LoseAnswer: action == "acquire"}
			})
			_, err := b.c.Lock(b.Context(), "report", client.LockOptions{TTL: time.Hour})
			require.ErrorIs(b, err, client.ErrUnreachable)
			require.ErrorIs(b, err, fakeapi.ErrCut)
			require.Equal(b, 4, b.api.Sent("acquire"), "one attempt and three retries")
			require.NoError(b, b.c.Close(b.Context()))
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})

	t.Run("does not release a lock that the caller's token held before", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			o := client.LockOptions{TTL: time.Hour, Token: "my-own-token-for-this"}
			l, err := b.c.Lock(b.Context(), "report", o)
			require.NoError(b, err)
			b.api.Inject(always(fakeapi.Fault{After: time.Second}))
			ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
			defer cancel()
			_, err = b.c.Lock(ctx, "report", o)
			require.ErrorIs(b, err, context.DeadlineExceeded)
			require.NoError(b, b.c.Close(b.Context()))
			fence, _ := b.api.Holder(lock)
			require.Equal(b, l.Fence(), fence, "the first call still holds the lock")
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("retries in a short outage, and fails in a long outage", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(func(_ string, n int) fakeapi.Fault {
				if n < 3 {
					return fakeapi.Fault{Status: 503}
				}
				return fakeapi.Fault{}
			})
			started := time.Now()
			l := acquire(b)
			require.GreaterOrEqual(b, time.Since(started), 3*time.Second, "Lock waits for Retry-After")
			require.NoError(b, l.Unlock(b.Context()))

			b.api.Inject(always(fakeapi.Fault{Status: 503}))
			started, sent := time.Now(), b.api.Sent("acquire")
			_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: time.Hour})
			require.ErrorIs(b, err, client.ErrStoreUnavailable)
			require.Less(b, time.Since(started), 10*time.Second)
			require.Equal(b, 4, b.api.Sent("acquire")-sent)
		})
	})

	t.Run("does not spin if the API refuses early", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			b.api.Inject(func(action string, _ int) fakeapi.Fault {
				return fakeapi.Fault{SkipWait: action == "acquire"}
			})
			sent := b.api.Sent("acquire")
			_, err := b.c.Lock(b.Context(), "report", client.LockOptions{Wait: 10 * time.Second})
			require.ErrorIs(b, err, client.ErrLockHeld)
			require.LessOrEqual(b, b.api.Sent("acquire")-sent, 110)
			require.NoError(b, l.Unlock(b.Context()))
		})
	})

	t.Run("refuses invalid input without a request", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			for name, test := range map[string]struct {
				name  string
				o     client.LockOptions
				field string
			}{
				"no name":                {"", client.LockOptions{}, "name"},
				"a name that is a path":  {"../policies", client.LockOptions{}, "name"},
				"a negative TTL":         {"report", client.LockOptions{TTL: -time.Second}, "ttl_ms"},
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
			require.Zero(b, b.api.Sent("acquire"))
		})
	})
}

func TestTryLock(t *testing.T) {
	t.Run("reports the holder and the remaining lease", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			l := acquire(b)
			started := time.Now()
			_, err := b.c.TryLock(b.Context(), "report", client.LockOptions{})
			require.Equal(b, started, time.Now(), "TryLock does not wait")
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
	})

	t.Run("obeys the deadline and releases a lock that was granted later", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(always(fakeapi.Fault{Before: 200 * time.Millisecond, After: 200 * time.Millisecond}))
			ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
			defer cancel()
			started := time.Now()
			_, err := b.c.TryLock(ctx, "report", client.LockOptions{TTL: time.Hour})
			require.ErrorIs(b, err, context.DeadlineExceeded)
			require.Equal(b, 50*time.Millisecond, time.Since(started), "TryLock returns at the deadline")
			require.NoError(b, b.c.Close(b.Context()))
			require.Len(b, b.api.Requests("acquire"), 1)
			fence, _ := b.api.Holder(lock)
			require.Zero(b, fence)
		})
	})

	t.Run("fails immediately if the store is unavailable", func(t *testing.T) {
		inBubble(t, func(b bubble) {
			b.api.Inject(always(fakeapi.Fault{Status: 503}))
			started := time.Now()
			_, err := b.c.TryLock(b.Context(), "report", client.LockOptions{})
			require.ErrorIs(b, err, client.ErrStoreUnavailable)
			require.Equal(b, started, time.Now())
			require.Equal(b, 1, b.api.Sent("acquire"))
		})
	})
}

func TestSemaphore(t *testing.T) {
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
