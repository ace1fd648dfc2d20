package ratelimit

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// openDefault returns a limiter with the default timeouts, as in the deployed functions.
func openDefault(t *testing.T, url string) *Limiter {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{url}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return New(t.Context(), conn)
}

// unreachable returns a limiter whose Redis address refuses connections.
func unreachable(t *testing.T) *Limiter {
	t.Helper()
	return openDefault(t, "redis://127.0.0.1:1")
}

// Maximum duration of a call while Redis is unavailable, before and after the circuit breaker
// opens. After it opens, calls do not wait for a socket. slack allows for a busy machine.
const (
	beforeOpen = 300 * time.Millisecond
	onceOpen   = 50 * time.Millisecond
	slack      = 150 * time.Millisecond
)

func TestFallback(t *testing.T) {
	t.Parallel()

	t.Run("lost Redis: checks are answered promptly", func(t *testing.T) {
		t.Parallel()
		for name, lose := range map[string]func(*redistest.Redis) error{
			"killed": func(r *redistest.Redis) error { return r.Server.Kill() },
			"paused": func(r *redistest.Redis) error { return r.Server.Pause() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := redistest.Single(t)
				l := openDefault(t, r.URL)
				c := newCheck("k", 1, newRule(policy.TokenBucket, 1000, hour))
				require.False(t, check(t, l, c).Degraded)
				require.NoError(t, lose(r))

				calls := 0
				for !l.redis.conn.BreakerOpen() {
					started := time.Now()
					d := check(t, l, c)
					require.Less(t, time.Since(started), beforeOpen+slack)
					require.True(t, d.Allowed && d.Degraded)
					calls++
				}
				require.LessOrEqual(t, calls, 10, "the breaker opens after a few failures")

				slow := 0
				for range 200 {
					started := time.Now()
					require.True(t, check(t, l, c).Degraded)
					if time.Since(started) > onceOpen {
						slow++
					}
				}
				require.LessOrEqual(t, slow, 4, "a busy machine may delay a few of the 200 calls")
			})
		}
	})

	t.Run("restored Redis: is used again", func(t *testing.T) {
		t.Parallel()
		r := redistest.Single(t)
		l := openDefault(t, r.URL)
		c := newCheck("k", 1, newRule(policy.SlidingWindow, 1000, hour))
		require.NoError(t, r.Server.Kill())
		for !l.redis.conn.BreakerOpen() {
			require.True(t, check(t, l, c).Degraded)
		}
		require.NoError(t, r.Server.Restart(t.Context()))
		require.Eventually(t, func() bool { return !check(t, l, c).Degraded }, 10*time.Second, 10*time.Millisecond)
		require.EqualValues(t, 998, check(t, l, c).Remaining, "Redis has charged the last two checks")
	})

	t.Run("local: an instance grants its share of each limit", func(t *testing.T) {
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
				{"at least 1", 3, 0.1, 1},
				{"the default share", 50, 0, 5},
				{"the whole limit", 7, 1, 7},
			} {
				t.Run(string(algorithm)+": "+tc.name, func(t *testing.T) {
					t.Parallel()
					l := unreachable(t)
					c := newCheck("k", 1, newRule(algorithm, tc.limit, hour))
					c.Policy.LocalShare = tc.share
					allowed := int64(0)
					for {
						d := check(t, l, c)
						require.True(t, d.Degraded)
						require.Equal(t, tc.want, d.Limit, "the scaled limit")
						if !d.Allowed {
							require.Equal(t, "r", d.Violated)
							require.Positive(t, d.RetryAfter)
							break
						}
						allowed++
					}
					require.Equal(t, tc.want, allowed)
				})
			}
		}
	})

	t.Run("local: concurrent callers get exactly the share", func(t *testing.T) {
		t.Parallel()
		for _, algorithm := range algorithms() {
			l := unreachable(t)
			c := newCheck("k", 1, newRule(algorithm, 100, hour))
			var mu sync.Mutex
			var wait sync.WaitGroup
			allowed := 0
			for range 64 {
				wait.Go(func() {
					d, err := l.Check(t.Context(), c)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("unexpected: %v", err)
					} else if d.Allowed {
						allowed++
					}
				})
			}
			wait.Wait()
			require.Equal(t, 10, allowed, algorithm)
		}
	})

	t.Run("on_unavailable and mode: decide for each policy", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct {
			name          string
			mode          policy.Mode
			onUnavailable policy.OnUnavailable
			want          []bool // allowed, for two consecutive checks
		}{
			{"local counts", policy.Enforce, policy.UnavailableLocal, []bool{true, false}},
			{"allow allows", policy.Enforce, policy.UnavailableAllow, []bool{true, true}},
			{"deny denies", policy.Enforce, policy.UnavailableDeny, []bool{false, false}},
			{"shadow with local allows", policy.Shadow, policy.UnavailableLocal, []bool{true, true}},
			{"shadow with deny allows", policy.Shadow, policy.UnavailableDeny, []bool{true, true}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				l := unreachable(t)
				c := newCheck("k", 1, newRule(policy.GCRA, 10, hour))
				c.Policy.Mode, c.Policy.OnUnavailable = tc.mode, tc.onUnavailable
				for _, want := range tc.want {
					d := check(t, l, c)
					require.Equal(t, want, d.Allowed)
					require.Equal(t, tc.mode, d.Mode)
					require.True(t, d.Degraded)
					require.Len(t, d.Rules, 1)
					if !want && tc.onUnavailable == policy.UnavailableDeny {
						require.Equal(t, time.Second, d.RetryAfter, "Redis may soon be available again")
					}
				}
			})
		}
	})

	t.Run("modes deny and allow: need no Redis", func(t *testing.T) {
		t.Parallel()
		l := unreachable(t)
		for mode, want := range map[policy.Mode]bool{policy.Deny: false, policy.Allow: true} {
			c := newCheck("k", 1, newRule(policy.GCRA, 1, hour))
			c.Policy.Mode = mode
			for range 3 {
				d := check(t, l, c)
				require.Equal(t, want, d.Allowed)
				require.False(t, d.Degraded)
			}
		}
	})

	t.Run("several checks: all are charged, or none", func(t *testing.T) {
		t.Parallel()
		l := unreachable(t)
		wide, narrow := newCheck("a", 1, newRule(policy.GCRA, 100, hour)),
			newCheck("b", 1, newRule(policy.FixedWindow, 10, hour))
		denying, allowing := newCheck("c", 1, newRule(policy.GCRA, 100, hour)),
			newCheck("d", 1, newRule(policy.GCRA, 100, hour))
		denying.Policy.OnUnavailable = policy.UnavailableDeny
		allowing.Policy.OnUnavailable = policy.UnavailableAllow
		allowed := func(checks ...Check) bool {
			decisions, allowed, err := l.CheckAll(t.Context(), checks)
			require.NoError(t, err)
			require.Len(t, decisions, len(checks))
			return allowed
		}
		require.True(t, allowed(wide, narrow, allowing))
		require.False(t, allowed(wide, narrow), "the share of the second limit is used up")
		require.False(t, allowed(wide, denying))
		require.EqualValues(t, 9, peek(t, l, wide).Remaining, "charged only by the first call")
	})

	t.Run("peek and refund: use the instance's own count", func(t *testing.T) {
		t.Parallel()
		l := unreachable(t)
		c := newCheck("k", 2, newRule(policy.TokenBucket, 100, hour))
		require.EqualValues(t, 8, check(t, l, c).Remaining)
		d := refund(t, l, c)
		require.EqualValues(t, 10, d.Remaining)
		require.True(t, d.Degraded)
		require.True(t, peek(t, l, c).Degraded)
	})

	t.Run("reset: fails without Redis", func(t *testing.T) {
		t.Parallel()
		c := newCheck("k", 2, newRule(policy.TokenBucket, 100, hour))
		require.ErrorIs(t, unreachable(t).Reset(t.Context(), c), ErrUnavailable)
	})

	t.Run("canceled call: charges nothing", func(t *testing.T) {
		t.Parallel()
		l := unreachable(t)
		c := newCheck("k", 1, newRule(policy.TokenBucket, 100, hour))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Check(canceled, c)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 10, peek(t, l, c).Remaining)
	})

	t.Run("memory: is bounded", func(t *testing.T) {
		t.Parallel()
		m := newMemoryStore()
		for i := range maxKeys + 10 {
			c := newCheck(strconv.Itoa(i), 1, newRule(policy.GCRA, 10, hour))
			_, _, err := m.decide(t.Context(), opCheck, []charge{c.charge()})
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(m.keys), maxKeys)
		require.Greater(t, len(m.keys), maxKeys/2)
	})
}
