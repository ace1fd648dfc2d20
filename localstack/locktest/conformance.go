// Package locktest is what every backend of locks must do, as one suite of tests.
package locktest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

// Backend keeps locks.
type Backend interface {
	Acquire(ctx context.Context, q lock.Request) (lock.Lease, error)
	Renew(ctx context.Context, kind lock.Kind, name, token string, ttl time.Duration) (lock.Lease, error)
	Release(ctx context.Context, kind lock.Kind, name, token string) (time.Duration, error)
	Force(ctx context.Context, kind lock.Kind, name string) (int64, error)
	Inspect(ctx context.Context, kind lock.Kind, name string) (lock.State, error)
}

const (
	ttl    = 5 * time.Second
	prompt = 4 * time.Second // below ttl, and far above what a busy machine needs
)

// Request is a normalized request with a TTL of five seconds, unless it has another.
func Request(t testing.TB, q lock.Request) lock.Request {
	t.Helper()
	if q.TTL == 0 {
		q.TTL = ttl
	}
	q, err := q.Normalize()
	require.NoError(t, err)
	return q
}

// Refusal demands that err is a fault with a code.
func Refusal(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

// Run holds a backend against everything that all of them promise.
func Run(t *testing.T, b Backend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backend){
		"an exclusive lock has one holder":                           oneHolder,
		"a caller whose answer was lost can ask again":               askAgain,
		"a repeated release is still a release":                      releaseAgain,
		"a token that holds nothing is told why":                     toldWhy,
		"a late renewal never takes a lock again":                    lateRenewal,
		"tokens are compared whole":                                  wholeTokens,
		"a forced release is told and raises the fence":              forcedRelease,
		"readers share and a writer does not":                        readersShare,
		"a token cannot hold a lock in two modes":                    oneMode,
		"a waiter gets the lock when it is released":                 waitForRelease,
		"a waiter gets the lock when the lease ends":                 waitForExpiry,
		"a wait that ends leaves nothing behind":                     waitEnds,
		"many who want one lock get it one at a time, fences rising": oneAtATime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

func oneHolder(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	ann, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Owner: "ann", Metadata: []byte(`{"pod": "a-1"}`)}))
	require.NoError(t, err)
	require.Positive(t, ann.Fence)
	require.Less(t, ann.Fence, int64(1)<<53)
	require.InDelta(t, ttl.Milliseconds(), ann.ExpiresAt-ann.AcquiredAt, 100)

	_, err = l.Acquire(ctx, Request(t, lock.Request{Name: name, Owner: "bob"}))
	f := Refusal(t, err, fault.LockHeld)
	require.Equal(t, "ann", f.Extra["holder"])
	require.Positive(t, f.RetryAfter)
	require.LessOrEqual(t, f.RetryAfter, ttl+time.Second)

	state, err := l.Inspect(ctx, lock.Lock, name)
	require.NoError(t, err)
	require.True(t, state.Held)
	require.Equal(t, lock.Exclusive, state.Mode)
	require.Len(t, state.Holders, 1)
	require.Equal(t, "ann", state.Holders[0].Owner)
	require.Equal(t, ann.Fence, state.Holders[0].Fence)
	require.JSONEq(t, `{"pod":"a-1"}`, string(state.Holders[0].Metadata))

	renewed, err := l.Renew(ctx, lock.Lock, name, ann.Token, 2*ttl)
	require.NoError(t, err)
	require.Equal(t, ann.Fence, renewed.Fence)
	require.GreaterOrEqual(t, renewed.ExpiresAt-ann.ExpiresAt, ttl.Milliseconds()-200)

	held, err := l.Release(ctx, lock.Lock, name, ann.Token)
	require.NoError(t, err)
	require.Positive(t, held)
	bob, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Owner: "bob"}))
	require.NoError(t, err)
	require.Greater(t, bob.Fence, ann.Fence)
}

func askAgain(t *testing.T, l Backend) {
	ctx := t.Context()
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		q := Request(t, lock.Request{Name: redistest.Name("lock"), Mode: mode})
		first, err := l.Acquire(ctx, q)
		require.NoError(t, err, mode)
		require.False(t, first.Reacquired)
		q.TTL = 2 * ttl
		again, err := l.Acquire(ctx, q)
		require.NoError(t, err, mode)
		require.True(t, again.Reacquired, mode)
		require.Equal(t, first.Fence, again.Fence, "%s: the fence stays", mode)
		require.GreaterOrEqual(t, again.ExpiresAt-first.ExpiresAt, ttl.Milliseconds()-200,
			"the lease lasts the new ttl from now")
	}
}

func releaseAgain(t *testing.T, l Backend) {
	ctx := t.Context()
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		name := redistest.Name("lock")
		lease, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Mode: mode}))
		require.NoError(t, err)
		for range 2 {
			_, err = l.Release(ctx, lock.Lock, name, lease.Token)
			require.NoError(t, err, mode)
		}
	}
}

func toldWhy(t *testing.T, l Backend) {
	ctx, name, stranger := t.Context(), redistest.Name("lock"), strings.Repeat("t", 16)
	for _, why := range []string{lock.Expired, lock.HeldByOther} { // before somebody holds it, and after
		_, err := l.Renew(ctx, lock.Lock, name, stranger, ttl)
		require.Equal(t, why, Refusal(t, err, fault.LockNotHeld).Extra["reason"])
		_, err = l.Release(ctx, lock.Lock, name, stranger)
		require.Equal(t, why, Refusal(t, err, fault.LockNotHeld).Extra["reason"])
		_, err = l.Acquire(ctx, Request(t, lock.Request{Name: name, TTL: time.Minute, Token: strings.Repeat("h", 16)}))
		require.NoError(t, err)
	}
}

func lateRenewal(t *testing.T, l Backend) {
	ctx := t.Context()
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		name := redistest.Name("lock")
		lost, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Mode: mode, TTL: lock.MinTTL}))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			s, err := l.Inspect(ctx, lock.Lock, name)
			return err == nil && !s.Held
		}, prompt, 5*time.Millisecond)
		_, err = l.Renew(ctx, lock.Lock, name, lost.Token, ttl)
		require.Equal(t, lock.Expired, Refusal(t, err, fault.LockNotHeld).Extra["reason"])
		_, err = l.Release(ctx, lock.Lock, name, lost.Token)
		require.Equal(t, lock.Expired, Refusal(t, err, fault.LockNotHeld).Extra["reason"])
		s, err := l.Inspect(ctx, lock.Lock, name)
		require.NoError(t, err)
		require.False(t, s.Held)
	}
}

// redislock compares custom tokens by prefix: "job-1" steals from "job-10".
func wholeTokens(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	long := strings.Repeat("k", 16) + "-10"
	_, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Token: long, TTL: time.Minute}))
	require.NoError(t, err)
	for _, other := range []string{long[:len(long)-1], long + "0", strings.ToUpper(long)} {
		_, err = l.Acquire(ctx, Request(t, lock.Request{Name: name, Token: other}))
		_ = Refusal(t, err, fault.LockHeld)
		_, err = l.Release(ctx, lock.Lock, name, other)
		_ = Refusal(t, err, fault.LockNotHeld)
	}
}

func forcedRelease(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	n, err := l.Force(ctx, lock.Lock, name)
	require.NoError(t, err)
	require.Zero(t, n)
	ann, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, TTL: time.Minute}))
	require.NoError(t, err)
	n, err = l.Force(ctx, lock.Lock, name)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = l.Renew(ctx, lock.Lock, name, ann.Token, ttl)
	f := Refusal(t, err, fault.LockNotHeld)
	require.Equal(t, lock.Expired, f.Extra["reason"])
	require.Equal(t, true, f.Extra["forced"])
	bob, err := l.Acquire(ctx, Request(t, lock.Request{Name: name}))
	require.NoError(t, err)
	require.Greater(t, bob.Fence, ann.Fence)
}

func readersShare(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	var tokens []string
	last := int64(0)
	for range 3 {
		reader, err := l.Acquire(ctx, Request(t,
			lock.Request{Name: name, Mode: lock.Shared, Owner: "reader", TTL: time.Minute}))
		require.NoError(t, err)
		require.Greater(t, reader.Fence, last)
		last = reader.Fence
		tokens = append(tokens, reader.Token)
	}
	_, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Owner: "writer"}))
	require.Equal(t, "reader", Refusal(t, err, fault.LockHeld).Extra["holder"])
	s, err := l.Inspect(ctx, lock.Lock, name)
	require.NoError(t, err)
	require.Equal(t, lock.Shared, s.Mode)
	require.Len(t, s.Holders, 3)
	for i, token := range tokens {
		_, err = l.Renew(ctx, lock.Lock, name, token, time.Minute)
		require.NoError(t, err)
		_, err = l.Release(ctx, lock.Lock, name, token)
		require.NoError(t, err)
		s, err := l.Inspect(ctx, lock.Lock, name)
		require.NoError(t, err)
		require.Len(t, s.Holders, 2-i)
	}
	writer, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, TTL: time.Minute}))
	require.NoError(t, err)
	require.Greater(t, writer.Fence, last)
	_, err = l.Acquire(ctx, Request(t, lock.Request{Name: name, Mode: lock.Shared}))
	_ = Refusal(t, err, fault.LockHeld)
}

func oneMode(t *testing.T, l Backend) {
	ctx := t.Context()
	for mode, other := range map[lock.Mode]lock.Mode{lock.Exclusive: lock.Shared, lock.Shared: lock.Exclusive} {
		q := Request(t, lock.Request{Name: redistest.Name("lock"), Mode: mode, TTL: time.Minute})
		first, err := l.Acquire(ctx, q)
		require.NoError(t, err)
		q.Mode, q.Wait = other, 100*time.Millisecond
		_, err = l.Acquire(ctx, q)
		_ = Refusal(t, err, fault.LockHeld)
		renewed, err := l.Renew(ctx, lock.Lock, q.Name, q.Token, time.Minute)
		require.NoError(t, err, "what it holds stays")
		require.Equal(t, first.Fence, renewed.Fence)
	}
}

func waitForRelease(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	ann, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, TTL: time.Minute}))
	require.NoError(t, err)
	got, q := make(chan lock.Lease, 1), Request(t, lock.Request{Name: name, Wait: lock.MaxWait})
	go func() {
		lease, err := l.Acquire(ctx, q)
		if err == nil {
			got <- lease
		}
		close(got)
	}()
	time.AfterFunc(100*time.Millisecond, func() {
		_, _ = l.Release(context.WithoutCancel(ctx), lock.Lock, name, ann.Token)
	})
	bob, ok := <-got
	require.True(t, ok)
	require.Greater(t, bob.Fence, ann.Fence)
	require.Less(t, bob.Waited, prompt)
}

func waitForExpiry(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	dead, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, TTL: 200 * time.Millisecond}))
	require.NoError(t, err)
	next, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Wait: lock.MaxWait}))
	require.NoError(t, err)
	require.GreaterOrEqual(t, next.AcquiredAt, dead.ExpiresAt,
		"expires_at is never later than the next holder's acquisition")
	require.Greater(t, next.Fence, dead.Fence)
	require.Less(t, next.Waited, prompt)
}

func waitEnds(t *testing.T, l Backend) {
	name := redistest.Name("lock")
	_, err := l.Acquire(t.Context(), Request(t, lock.Request{Name: name, TTL: time.Minute}))
	require.NoError(t, err)
	_, err = l.Acquire(t.Context(), Request(t, lock.Request{Name: name, Wait: 50 * time.Millisecond}))
	_ = Refusal(t, err, fault.LockHeld)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = l.Acquire(ctx, Request(t, lock.Request{Name: name, Wait: lock.MaxWait}))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	s, err := l.Inspect(t.Context(), lock.Lock, name)
	require.NoError(t, err)
	require.Zero(t, s.Waiters)
	require.Len(t, s.Holders, 1)
}

func oneAtATime(t *testing.T, l Backend) {
	ctx, name := t.Context(), redistest.Name("lock")
	var inside, overlaps int
	var fences []int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			lease, err := l.Acquire(ctx, Request(t, lock.Request{Name: name, Wait: lock.MaxWait, TTL: time.Minute}))
			if err != nil {
				return
			}
			mu.Lock()
			if inside++; inside > 1 {
				overlaps++
			}
			fences = append(fences, lease.Fence)
			mu.Unlock()
			<-time.After(5 * time.Millisecond) // long enough for another to step in, if it could
			mu.Lock()
			inside--
			mu.Unlock()
			_, _ = l.Release(ctx, lock.Lock, name, lease.Token)
		})
	}
	wait.Wait()
	require.Zero(t, overlaps)
	require.Len(t, fences, 6)
	require.IsIncreasing(t, fences)
}
