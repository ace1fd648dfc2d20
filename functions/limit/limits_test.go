package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Run("allowed: answers 200 with the decision", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "login", rule("hourly", "sliding_window", 3, 3_600_000))
		a := f.Want(t, 200, "POST", "/v1/limits/login/check", object{"key": "ü {1}", "cost": 2})
		require.Equal(t, "application/json", a.Header.Get("Content-Type"))
		require.Empty(t, a.Header.Get("Sluice-Degraded"))
		require.Equal(t, object{
			"allowed": true, "policy": "login", "key": "ü {1}", "cost": 2.0, "remaining": 1.0, "limit": 3.0,
			"reset_after_ms": 3_600_000.0, "retry_after_ms": 0.0, "violated": nil, "mode": "enforce", "degraded": false,
			"rules": []any{object{
				"name": "hourly", "algorithm": "sliding_window", "limit": 3.0, "window_ms": 3_600_000.0,
				"remaining": 1.0, "reset_after_ms": 3_600_000.0, "retry_after_ms": 0.0,
			}},
		}, a.Body)
	})

	t.Run("denied: answers 429 with the decision in a problem document", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "login", rule("second", "gcra", 100, 1000), rule("hourly", "fixed_window", 1, 3_600_000))
		f.Want(t, 200, "POST", "/v1/limits/login/check", object{"key": "k"})
		a := f.Want(t, 429, "POST", "/v1/limits/login/check", object{"key": "k"})
		require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", a.Body["type"])
		require.Equal(t, "quota_exceeded", a.Body["code"])
		require.Equal(t, []any{"hourly"}, a.Body["violated-policies"])
		require.Equal(t, "hourly", a.Body["violated"])
		require.Equal(t, false, a.Body["allowed"])
		require.EqualValues(t, 0, a.Body["remaining"])
		require.Len(t, a.Body["rules"], 2)
		require.Positive(t, a.Body["retry_after_ms"])
		never := f.Want(t, 429, "POST", "/v1/limits/login/check", object{"key": "k", "cost": 2})
		require.Contains(t, never.Body, "retry_after_ms")
		require.Nil(t, never.Body["retry_after_ms"], "waiting cannot help")
		require.Empty(t, never.Header.Get("Retry-After"))
	})

	t.Run("modes and overrides: decide the status", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for mode, want := range map[string][]int{"enforce": {200, 429}, "shadow": {200, 200}, "deny": {429, 429},
			"allow": {200, 200}} {
			f.Want(t, 201, "PUT", "/v1/policies/"+mode,
				object{"mode": mode, "rules": []object{rule("r", "sliding_window", 1, 3_600_000)}})
			for i, status := range want {
				a := f.Want(t, status, "POST", "/v1/limits/"+mode+"/check", object{"key": "k"})
				require.Equal(t, mode, a.Body["mode"])
				require.Equal(t, status == 200, a.Body["allowed"])
				require.NotEmpty(t, a.Header.Get("RateLimit-Policy"))
				if mode == "shadow" && i == 1 {
					require.Equal(t, "r", a.Body["violated"], "the rule that would have denied")
				}
				if mode == "deny" {
					require.Nil(t, a.Body["retry_after_ms"])
					require.Equal(t, "quota_exceeded", a.Body["code"])
				}
			}
		}
		f.Want(t, 201, "PUT", "/v1/policies/mixed", object{
			"rules": []object{rule("r", "gcra", 1, 3_600_000)},
			"overrides": []object{{"key": "bot-*", "mode": "deny"}, {"key": "bot-ours", "mode": "allow"},
				{"key": "gold", "rules": []object{rule("r", "gcra", 5, 3_600_000)}}},
		})
		for key, want := range map[string]int{"bot-x": 429, "bot-ours": 200, "gold": 200, "plain": 200} {
			f.Want(t, want, "POST", "/v1/limits/mixed/check", object{"key": key})
		}
		require.EqualValues(t, 4, f.remaining(t, "mixed", "gold"))
	})
}

// The grammar of structured field lists (RFC 9651), reduced to the parts that
// draft-ietf-httpapi-ratelimit-headers-10 uses: strings and integer parameters.
var (
	policyList = regexp.MustCompile(`^"[^"\\]+";q=\d+;w=[1-9]\d*(, "[^"\\]+";q=\d+;w=[1-9]\d*)*$`)
	limitItem  = regexp.MustCompile(`^"([^"\\]+)";r=(\d+);t=(\d+)$`)
)

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	t.Run("RateLimit and RateLimit-Policy: follow draft-ietf-httpapi-ratelimit-headers-10", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		burst := rule("burst", "token_bucket", 10, 1500)
		burst["burst"] = 20
		f.put(t, "p", burst, rule("hourly", "sliding_window", 3, 3_600_000), rule("fast", "gcra", 50, 20))
		check := func(status, cost int) (name string, remaining, reset int, header http.Header) {
			a := f.Want(t, status, "POST", "/v1/limits/p/check", object{"key": "k", "cost": cost})
			require.Equal(t, `"burst";q=20;w=2, "hourly";q=3;w=3600, "fast";q=50;w=1`, a.Header.Get("RateLimit-Policy"),
				"q is the capacity, w the window in whole seconds")
			require.Regexp(t, policyList, a.Header.Get("RateLimit-Policy"))
			found := limitItem.FindStringSubmatch(a.Header.Get("RateLimit"))
			require.NotNil(t, found, a.Header.Get("RateLimit"))
			remaining, _ = strconv.Atoi(found[2])
			reset, _ = strconv.Atoi(found[3])
			return found[1], remaining, reset, a.Header
		}
		name, remaining, reset, header := check(200, 1)
		require.Equal(t, "hourly", name, "the tightest rule")
		require.Equal(t, 2, remaining)
		require.Equal(t, 3600, reset)
		require.Empty(t, header.Get("Retry-After"))
		check(200, 2)
		name, remaining, reset, header = check(429, 1)
		require.Equal(t, "hourly", name)
		require.Zero(t, remaining)
		retry, err := strconv.Atoi(header.Get("Retry-After"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, retry, reset, "Retry-After is never shorter than t")
		require.InDelta(t, 3600, retry, 60)
		_, _, _, header = check(429, 4)
		require.Empty(t, header.Get("Retry-After"), "waiting cannot help")
		a := f.Want(t, 200, "GET", "/v1/limits/p?key=k2", nil)
		require.Regexp(t, limitItem, a.Header.Get("RateLimit"), "a peek also has the header")
	})

	t.Run("Retry-After: is rounded up", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "p", rule("r", "gcra", 10, 1000))
		f.Want(t, 200, "POST", "/v1/limits/p/check", object{"key": "k", "cost": 10})
		a := f.Want(t, 429, "POST", "/v1/limits/p/check", object{"key": "k", "cost": 9})
		require.LessOrEqual(t, a.Body["retry_after_ms"], 900.0)
		require.Equal(t, "1", a.Header.Get("Retry-After"))
	})
}

func TestCheckAll(t *testing.T) {
	t.Parallel()
	t.Run("one denies: answers 429 with every decision and charges nothing", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "wide", rule("w", "gcra", 100, 1000))
		f.put(t, "narrow", rule("n", "fixed_window", 1, 3_600_000))
		f.put(t, "middle", rule("m", "sliding_window", 2, 60_000))
		checks := object{"checks": []object{{"policy": "wide", "key": "k", "cost": 3}, {"policy": "narrow", "key": "k"},
			{"policy": "middle", "key": "k"}}}
		a := f.Want(t, 200, "POST", "/v1/limits/check", checks)
		decisions, _ := a.Body["decisions"].([]any)
		require.Len(t, decisions, 3)
		require.True(t, strings.HasPrefix(a.Header.Get("RateLimit"), `"n";r=0`), a.Header.Get("RateLimit"))

		a = f.Want(t, 429, "POST", "/v1/limits/check", checks)
		require.Equal(t, "quota_exceeded", a.Body["code"])
		require.Equal(t, []any{"n"}, a.Body["violated-policies"])
		decisions, _ = a.Body["decisions"].([]any)
		require.Len(t, decisions, 3)
		for i, want := range []bool{true, false, true} {
			d, _ := decisions[i].(object)
			require.Equal(t, want, d["allowed"], "decision %d", i)
		}
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		require.EqualValues(t, 1, f.remaining(t, "middle", "k"), "charged once")
	})

	// After the retry time of a batch, a retry must be allowed by every check of the batch.
	t.Run("several deny: the longest retry time is shown", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "long", rule("l", "fixed_window", 5, 366*24*3_600_000))
		f.put(t, "short", rule("s", "gcra", 1, 60_000))
		f.Want(t, 200, "POST", "/v1/limits/long/check", object{"key": "k", "cost": 2})
		f.Want(t, 200, "POST", "/v1/limits/short/check", object{"key": "k"})
		for _, order := range [][]object{
			{{"policy": "long", "key": "k", "cost": 4}, {"policy": "short", "key": "k"}},
			{{"policy": "short", "key": "k"}, {"policy": "long", "key": "k", "cost": 4}},
		} {
			a := f.Want(t, 429, "POST", "/v1/limits/check", object{"checks": order})
			require.Greater(t, a.Body["retry_after_ms"], 61_000.0)
			require.Equal(t, []any{"l"}, a.Body["violated-policies"])
		}
		a := f.Want(t, 429, "POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "long", "key": "k", "cost": 6}, {"policy": "short", "key": "k"}}})
		require.Nil(t, a.Body["retry_after_ms"], "one of the costs exceeds its limit")
	})
}

func TestPeekRefundReset(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "token_bucket", 5, 3_600_000))
	key := "a&b=c #?"
	query := "?key=" + url.QueryEscape(key)
	f.Want(t, 200, "POST", "/v1/limits/p/check", object{"key": key, "cost": 5})
	peek := f.Want(t, 200, "GET", "/v1/limits/p"+query, nil)
	require.Equal(t, false, peek.Body["allowed"], "a peek shows a denial with the status 200")
	require.Equal(t, "r", peek.Body["violated"])
	require.EqualValues(t, 2, f.Want(t, 200, "POST", "/v1/limits/p/refund",
		object{"key": key, "cost": 2}).Body["remaining"])
	require.EqualValues(t, 5, f.Want(t, 200, "POST", "/v1/limits/p/refund",
		object{"key": key, "cost": 10_000}).Body["remaining"], "a refund never exceeds the capacity")
	f.Want(t, 200, "POST", "/v1/limits/p/check", object{"key": key, "cost": 5})
	f.Want(t, 200, "DELETE", "/v1/limits/p"+query, nil)
	require.EqualValues(t, 5, f.remaining(t, "p", key))
}
