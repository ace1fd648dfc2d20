package ratelimit

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// production opens a limiter with the timeouts that the functions have.
func production(t *testing.T, r *redistest.Redis) *Limiter {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return New(t.Context(), NewRedis(conn))
}

// Bounds of an answer while Redis is away, with room for a busy machine. The first calls wait for a
// socket; the others do not.
const (
	beforeOpen = 300 * time.Millisecond
	onceOpen   = 50 * time.Millisecond
	slack      = 150 * time.Millisecond
)

func TestALostRedisIsAnsweredForPromptly(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Redis) error{
		"that was killed": func(r *redistest.Redis) error { return r.Server.Kill() },
		"that hangs":      func(r *redistest.Redis) error { return r.Server.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Single(t)
			l := production(t, r)
			c := newCheck("k", 1, newRule(policy.TokenBucket, 1000, hour))
			require.False(t, ask(t, l, c).Degraded)
			require.NoError(t, lose(r))

			calls := 0
			for !l.redis.conn.BreakerOpen() {
				started := time.Now()
				d := ask(t, l, c)
				require.Less(t, time.Since(started), beforeOpen+slack)
				require.True(t, d.Allowed && d.Degraded)
				calls++
			}
			require.LessOrEqual(t, calls, 10, "the breaker opens after a few failures")
			slow := 0
			for range 200 {
				started := time.Now()
				require.True(t, ask(t, l, c).Degraded)
				if time.Since(started) > onceOpen {
					slow++
				}
			}
			require.LessOrEqual(t, slow, 4, "a busy machine may delay a few of 200")
		})
	}
}

func TestALimiterReturnsToRedisByItself(t *testing.T) {
	t.Parallel()
	r := redistest.Single(t)
	l := production(t, r)
	c := newCheck("k", 1, newRule(policy.SlidingWindow, 1000, hour))
	require.NoError(t, r.Server.Kill())
	for !l.redis.conn.BreakerOpen() {
		require.True(t, ask(t, l, c).Degraded)
	}
	require.NoError(t, r.Server.Restart(t.Context()))
	require.Eventually(t, func() bool { return !ask(t, l, c).Degraded }, 10*time.Second, 10*time.Millisecond)
	require.EqualValues(t, 998, ask(t, l, c).Remaining, "counted in Redis: one before, one now")
}

// away makes a limiter whose Redis is not there.
func away(t *testing.T) *Limiter {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{"redis://127.0.0.1:1"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return New(t.Context(), NewRedis(conn))
}

func TestAnInstanceCountsAtItsShareOfEachLimit(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms() {
		for _, tc := range []struct {
			name  string
			limit int64
			share float64
			want  int64
		}{
			{"a tenth of 100", 100, 0.1, 10},
			{"a tenth of 19, rounded down", 19, 0.1, 1},
			{"at least one", 3, 0.1, 1},
			{"all of it", 7, 1, 7},
		} {
			t.Run(string(algorithm)+": "+tc.name, func(t *testing.T) {
				t.Parallel()
				l := away(t)
				c := newCheck("k", 1, newRule(algorithm, tc.limit, hour))
				c.LocalShare = tc.share
				passed := int64(0)
				for {
					d := ask(t, l, c)
					require.True(t, d.Degraded)
					require.Equal(t, tc.want, d.Limit, "the limit that is in force")
					if !d.Allowed {
						require.EqualValues(t, "r", d.Violated)
						require.Positive(t, *d.RetryAfterMS)
						break
					}
					passed++
				}
				require.Equal(t, tc.want, passed)
			})
		}
	}
}

func TestEachPolicyDecidesForItself(t *testing.T) {
	t.Parallel()
	rule := newRule(policy.GCRA, 10, hour)
	for _, tc := range []struct {
		name          string
		mode          policy.Mode
		onUnavailable policy.OnUnavailable
		want          []bool // of two checks in a row
	}{
		{"local counts", policy.Enforce, policy.UnavailableLocal, []bool{true, false}},
		{"allow lets pass", policy.Enforce, policy.UnavailableAllow, []bool{true, true}},
		{"deny lets nothing pass", policy.Enforce, policy.UnavailableDeny, []bool{false, false}},
		{"a shadow never denies, by local", policy.Shadow, policy.UnavailableLocal, []bool{true, true}},
		{"a shadow never denies, by deny", policy.Shadow, policy.UnavailableDeny, []bool{true, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := away(t)
			c := newCheck("k", 1, rule)
			c.Mode, c.OnUnavailable = tc.mode, tc.onUnavailable
			for _, want := range tc.want {
				d := ask(t, l, c)
				require.Equal(t, want, d.Allowed)
				require.Equal(t, tc.mode, d.Mode)
				require.True(t, d.Degraded)
				require.Len(t, d.Rules, 1)
				if !want && tc.onUnavailable == policy.UnavailableDeny {
					require.EqualValues(t, 1000, *d.RetryAfterMS, "an outage ends; ask again soon")
				}
			}
		})
	}
}

// Modes that count nothing need no Redis.
func TestDenyAndAllowHoldWithoutRedisToo(t *testing.T) {
	t.Parallel()
	l := away(t)
	for mode, want := range map[policy.Mode]bool{policy.Deny: false, policy.Allow: true} {
		c := newCheck("k", 1, newRule(policy.GCRA, 1, hour))
		c.Mode = mode
		for range 3 {
			d := ask(t, l, c)
			require.Equal(t, want, d.Allowed)
			require.False(t, d.Degraded)
		}
	}
}

func TestSeveralChecksAreChargedAllOrNoneWithoutRedis(t *testing.T) {
	t.Parallel()
	l := away(t)
	wide, narrow := newCheck("a", 1, newRule(policy.GCRA, 100, hour)),
		newCheck("b", 1, newRule(policy.FixedWindow, 10, hour))
	shut, open := newCheck("c", 1, newRule(policy.GCRA, 100, hour)), newCheck("d", 1, newRule(policy.GCRA, 100, hour))
	shut.OnUnavailable, open.OnUnavailable = policy.UnavailableDeny, policy.UnavailableAllow
	ok := func(checks ...Check) bool {
		decisions, allowed, err := l.Check(t.Context(), checks)
		require.NoError(t, err)
		require.Len(t, decisions, len(checks))
		return allowed
	}
	require.True(t, ok(wide, narrow, open))
	require.False(t, ok(wide, narrow), "the second one's share is used up")
	require.False(t, ok(wide, shut))
	require.EqualValues(t, 9, peek(t, l, wide).Remaining, "charged once")
}

func TestARefundAndAPeekWithoutRedisAreOfTheInstancesOwnCount(t *testing.T) {
	t.Parallel()
	l := away(t)
	c := newCheck("k", 2, newRule(policy.TokenBucket, 100, hour))
	require.EqualValues(t, 8, ask(t, l, c).Remaining)
	d, err := l.Refund(t.Context(), c)
	require.NoError(t, err)
	require.EqualValues(t, 10, d.Remaining)
	require.True(t, d.Degraded)
	require.True(t, peek(t, l, c).Degraded)
	require.Equal(t, fault.StoreUnavailable, fault.CodeOf(l.Reset(t.Context(), c)), "a reset must reach Redis")
}

func TestACallerThatGaveUpIsNotCounted(t *testing.T) {
	t.Parallel()
	l := away(t)
	c := newCheck("k", 1, newRule(policy.TokenBucket, 100, hour))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := l.Check(gone, []Check{c})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 10, peek(t, l, c).Remaining)
}

func TestTheMemoryOfAnInstanceIsBounded(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	rule := newRule(policy.GCRA, 10, hour)
	for i := range maxKeys + 10 {
		_, _, err := m.decide(t.Context(), opCheck, []Check{newCheck(strconv.Itoa(i), 1, rule)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(m.keys), maxKeys)
	require.Greater(t, len(m.keys), maxKeys/2)
}

// The instance's own count is right also when its callers are many at once.
func TestManyCallersAtOncePassTheInstancesShareExactly(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms() {
		l := away(t)
		c := newCheck("k", 1, newRule(algorithm, 100, hour))
		var mu sync.Mutex
		var wait sync.WaitGroup
		passed := 0
		for range 64 {
			wait.Go(func() {
				decisions, _, err := l.Check(t.Context(), []Check{c})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("unexpected: %v", err)
				} else if decisions[0].Allowed {
					passed++
				}
			})
		}
		wait.Wait()
		require.Equal(t, 10, passed, algorithm)
	}
}
