package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// denied is the API's answer to a denied check.
const denied = `{
	"code": "quota_exceeded", "status": 429, "detail": "no",
	"type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
	"allowed": false, "policy": "login", "key": "ann", "cost": 1, "remaining": 0, "limit": 5,
	"reset_after_ms": 60000, "retry_after_ms": 1500, "violated": "burst", "mode": "enforce", "degraded": false,
	"rules": [{
		"name": "burst", "algorithm": "gcra", "limit": 5, "window_ms": 1000, "remaining": 0,
		"reset_after_ms": 60000, "retry_after_ms": 1500
	}]
}`

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Run("returns a denial without an error", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 429, denied) })
		c, ctx := s.client(t, client.Config{}), t.Context()
		d, err := c.Check(ctx, client.Check{Policy: "login", Key: "ann", Cost: 3})
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, "burst", d.Violated)
		require.Equal(t, client.AlgorithmGCRA, d.Rules[0].Algorithm)
		require.Equal(t, new(1500*time.Millisecond), d.RetryAfter)
		require.Equal(t, time.Second, d.Rules[0].Window)
		require.Equal(t, time.Minute, d.Rules[0].ResetAfter)
		require.Equal(t, map[string]any{"key": "ann", "cost": 3.}, s.got()[0].body)

		allowed, err := c.Allow(ctx, "login", "ann")
		require.NoError(t, err)
		require.False(t, allowed)
		require.Len(t, s.got(), 2, "a denial is not retried")
	})

	t.Run("never allows a request if the check fails", func(t *testing.T) {
		t.Parallel()
		for status, text := range map[int]string{
			404: `{"code":"policy_not_found","status":404}`, 429: `{"message":"Too Many Requests"}`,
			503: `{"code":"store_unavailable","status":503}`,
			200: `not JSON`, 500: `{"code":"internal","status":500}`,
		} {
			s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, status, text) })
			c := s.client(t, client.Config{Retries: -1})
			allowed, err := c.Allow(t.Context(), "login", "ann")
			require.Error(t, err, "%d %s", status, text)
			require.False(t, allowed)
			_, allowed, err = c.CheckAll(t.Context(), []client.Check{{Policy: "login", Key: "ann"}})
			require.Error(t, err)
			require.False(t, allowed)
		}
	})

	t.Run("returns no RetryAfter for a check that is never allowed", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			say(w, 200, []string{`{"retry_after_ms":null}`, `{"retry_after_ms":0}`}[n])
		})
		c := s.client(t, client.Config{})
		for _, want := range []*time.Duration{nil, new(time.Duration)} {
			d, err := c.Peek(t.Context(), "login", "ann")
			require.NoError(t, err)
			require.Equal(t, want, d.RetryAfter)
		}
	})
}

// request sends a request through the middleware to a handler that answers "allowed".
func request(t *testing.T, c *client.Client, cfg client.LimitConfig, r *http.Request) *http.Response {
	t.Helper()
	cfg.Policy = "login"
	limit, err := c.Middleware(cfg)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "allowed")
	})).ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	t.Run("sets the headers of the decision", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("RateLimit", `"burst";r=0;t=2`)
			w.Header().Set("RateLimit-Policy", `"burst";q=5;w=1`)
			if n == 0 {
				say(w, 200, `{"allowed":true}`)
				return
			}
			say(w, 429, denied)
		})
		c := s.client(t, client.Config{})
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		allowed := request(t, c, client.LimitConfig{}, r)
		require.Equal(t, "allowed", read(t, allowed))
		require.Equal(t, `"burst";r=0;t=2`, allowed.Header.Get("RateLimit"))
		require.Equal(t, map[string]any{"key": "192.0.2.1", "cost": 1.}, s.got()[0].body,
			"the key is the address without the port")

		out := request(t, c, client.LimitConfig{}, r)
		require.Equal(t, 429, out.StatusCode)
		require.Equal(t, "2", out.Header.Get("Retry-After"), "whole seconds, rounded up")
		require.Equal(t, `"burst";q=5;w=1`, out.Header.Get("RateLimit-Policy"))
		require.Equal(t, "application/problem+json", out.Header.Get("Content-Type"))
		require.JSONEq(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
			"title":"Quota exceeded","status":429,
			"detail":"too many requests","retry_after_ms":1500,"violated-policies":["burst"]}`, read(t, out))
	})

	t.Run("fails open or closed without a decision", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := s.client(t, client.Config{})
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		var seen error
		cfg := client.LimitConfig{
			Timeout: 50 * time.Millisecond, OnError: func(_ *http.Request, err error) { seen = err },
		}
		started := time.Now()
		require.Equal(t, "allowed", read(t, request(t, c, cfg, r)), "by default, the request proceeds")
		require.Less(t, time.Since(started), 5*time.Second)
		require.Error(t, seen)

		cfg.FailClosed = true
		out := request(t, c, cfg, r)
		require.Equal(t, 503, out.StatusCode)
		require.Equal(t, "1", out.Header.Get("Retry-After"))
		require.NotContains(t, read(t, out), s.URL, "the error is not sent to the peer")
	})

	t.Run("hashes keys that the API would refuse", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 429, denied) })
		c := s.client(t, client.Config{})
		key := func(r *http.Request) string { return r.Header.Get("X-Api-Key") }
		for name, sent := range map[string]string{"too long": strings.Repeat("k", 513), "invalid UTF-8": "\xff"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header["X-Api-Key"] = []string{sent}
			require.Equal(t, 429, request(t, c, client.LimitConfig{Key: key}, r).StatusCode, name)
			got := s.got()
			charged, _ := got[len(got)-1].body["key"].(string)
			require.Regexp(t, `^sha256:[0-9a-f]{64}$`, charged, name)
		}
		charged := len(s.got())
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		require.Equal(t, "allowed", read(t, request(t, c, client.LimitConfig{Key: key}, r)),
			"a request without a key is not limited")
		require.Len(t, s.got(), charged)

		_, err := c.Middleware(client.LimitConfig{})
		require.ErrorIs(t, err, client.ErrInvalidRequest)
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	t.Run("are changed with conditions", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"2-ab"`)
			say(w, 200, `{"name":"login","mode":"enforce","version":2,"updated_at":"2030-01-02T03:04:05.678Z",
				"rules":[{"name":"r","algorithm":"gcra","limit":5,"window_ms":1000}]}`)
		})
		c, ctx := s.client(t, client.Config{}), t.Context()
		p, err := c.GetPolicy(ctx, "login")
		require.NoError(t, err)
		require.Equal(t, `"2-ab"`, p.ETag)
		require.EqualValues(t, 2, p.Version)
		require.Equal(t, client.AlgorithmGCRA, p.Rules[0].Algorithm)

		p.Rules[0].Limit = 6
		p, err = c.PutPolicy(ctx, p.Policy, client.IfMatch(p.ETag))
		require.NoError(t, err)
		require.Equal(t, `"2-ab"`, p.ETag)
		_, err = c.PutPolicy(ctx, p.Policy, client.IfNoneMatch())
		require.NoError(t, err)
		require.NoError(t, c.DeletePolicy(ctx, "login", client.IfMatch(p.ETag)))
		got := s.got()
		require.Equal(t, `"2-ab"`, got[1].header.Get("If-Match"))
		require.NotContains(t, got[1].body, "version", "the body is the policy without its version")
		require.Equal(t, "*", got[2].header.Get("If-None-Match"))
		require.Equal(t, `"2-ab"`, got[3].header.Get("If-Match"))
	})

	t.Run("are deleted although the answer was lost", func(t *testing.T) {
		t.Parallel()
		for _, lost := range []bool{true, false} {
			s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 0 && lost {
					cut(w)
				}
				say(w, 404, `{"code":"policy_not_found","status":404}`)
			})
			err := s.client(t, client.Config{}).DeletePolicy(t.Context(), "login")
			if lost {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, client.ErrPolicyNotFound)
			}
		}
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			say(w, 503, `{"status":"unhealthy","checks":[{"name":"redis","status":"down","latency_ms":1.5}]}`)
			return
		}
		say(w, 503, `{"message":"Service Unavailable"}`)
	})
	c := s.client(t, client.Config{Retries: -1})
	h, err := c.Health(t.Context())
	require.NoError(t, err)
	require.False(t, h.Healthy())
	require.Equal(t, []client.HealthCheck{{Name: "redis", Status: "down", Latency: 1500 * time.Microsecond}}, h.Checks)
	_, err = c.Health(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
}
