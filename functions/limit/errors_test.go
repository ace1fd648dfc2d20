package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

func TestInvalidInput(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 1000))
	many := make([]object, 21)
	for i := range many {
		many[i] = object{"policy": "p", "key": "k"}
	}
	for name, tc := range map[string]struct {
		method, target string
		body           any
		fields         []string
	}{
		"no key":        {"POST", "/v1/limits/p/check", object{}, []string{"key"}},
		"an empty body": {"POST", "/v1/limits/p/check", "", []string{"key"}},
		"an empty key":  {"POST", "/v1/limits/p/check", object{"key": ""}, []string{"key"}},
		"a key of 513 bytes": {"POST", "/v1/limits/p/check", object{"key": strings.Repeat("k", 513)},
			[]string{"key"}},
		"a key that is a number": {"POST", "/v1/limits/p/check", object{"key": 1}, []string{"key"}},
		"a key of broken UTF-8":  {"POST", "/v1/limits/p/check", "{\"key\":\"\xff\"}", []string{"key"}},
		"a cost of zero": {"POST", "/v1/limits/p/check", object{"key": "k", "cost": 0},
			[]string{"cost"}},
		"a negative cost": {"POST", "/v1/limits/p/refund", object{"key": "k", "cost": -1},
			[]string{"cost"}},
		"a cost over 10 000": {"POST", "/v1/limits/p/refund", object{"key": "k", "cost": 10_001},
			[]string{"cost"}},
		"a cost with a fraction": {"POST", "/v1/limits/p/check", object{"key": "k", "cost": 1.5},
			[]string{"cost"}},
		"a cost over 64 bits": {"POST", "/v1/limits/p/check", `{"key":"k","cost":99999999999999999999}`,
			[]string{"cost"}},
		"an invalid key and an invalid cost": {"POST", "/v1/limits/p/check", object{"key": "", "cost": 0},
			[]string{"key", "cost"}},
		"an unknown field": {"POST", "/v1/limits/p/check", object{"key": "k", "costs": 1},
			[]string{"costs"}},
		"a field in capitals":    {"POST", "/v1/limits/p/check", object{"Key": "k"}, []string{"Key"}},
		"a field twice":          {"POST", "/v1/limits/p/check", `{"key":"k","key":"k"}`, []string{"key"}},
		"incomplete JSON":        {"POST", "/v1/limits/p/check", `{"key":`, []string{"key"}},
		"an array":               {"POST", "/v1/limits/p/check", `[]`, []string{"body"}},
		"text after the object":  {"POST", "/v1/limits/p/check", `{"key":"k"} x`, []string{"body"}},
		"an invalid policy name": {"POST", "/v1/limits/-p/check", object{"key": "k"}, []string{"policy"}},
		"no key in the query":    {"GET", "/v1/limits/p", nil, []string{"key"}},
		"two keys in the query":  {"GET", "/v1/limits/p?key=a&key=b", nil, []string{"key"}},
		"an unknown parameter":   {"DELETE", "/v1/limits/p?key=a&keys=b", nil, []string{"keys"}},
		"a broken query":         {"GET", "/v1/limits/p?key=%zz", nil, []string{"query"}},
		"no checks":              {"POST", "/v1/limits/check", object{}, []string{"checks"}},
		"twenty-one checks":      {"POST", "/v1/limits/check", object{"checks": many}, []string{"checks"}},
		"invalid checks, by position": {"POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "p"}, {"policy": "/", "key": "k", "cost": 0}}},
			[]string{"checks[0].key", "checks[1].policy", "checks[1].cost"}},
		"an unknown field of a check": {"POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "p", "key": "k", "n": 1}}}, []string{"checks[0].n"}},
		"a health check with a query": {"GET", "/v1/health?verbose=1", nil, []string{"verbose"}},
	} {
		a := f.Want(t, 400, tc.method, tc.target, tc.body)
		require.Equal(t, "invalid_request", a.Body["code"], name)
		require.Equal(t, tc.fields, a.InvalidFields(t), name)
	}
	require.EqualValues(t, 10, f.remaining(t, "p", "k"),
		"an invalid call charges nothing")
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 1000))
	for _, tc := range []struct {
		method, target, code string
		body                 any
	}{
		{"POST", "/v1/limits/missing/check", "policy_not_found", object{"key": "k"}},
		{"POST", "/v1/limits/missing/refund", "policy_not_found", object{"key": "k"}},
		{"GET", "/v1/limits/missing?key=k", "policy_not_found", nil},
		{"DELETE", "/v1/limits/missing?key=k", "policy_not_found", nil},
		{"POST", "/v1/limits/check", "policy_not_found",
			object{"checks": []object{{"policy": "p", "key": "k"}, {"policy": "missing", "key": "k"}}}},
		{"GET", "/v1/policies/missing", "policy_not_found", nil},
		{"DELETE", "/v1/policies/missing", "policy_not_found", nil},
		{"GET", "/v1/limit", "not_found", nil},
		{"GET", "/", "not_found", nil},
		{"GET", "/v1/policies/", "not_found", nil},
	} {
		require.Equal(t, tc.code, f.Want(t, 404, tc.method, tc.target, tc.body).Body["code"], tc.target)
	}
	require.EqualValues(t, 10, f.remaining(t, "p", "k"),
		"a batch with a missing policy charges nothing")
}

func TestOtherProblems(t *testing.T) {
	t.Parallel()
	t.Run("wrong method, wrong media type or too large a body: is refused", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "p", rule("r", "gcra", 10, 1000))

		a := f.Want(t, 405, "PATCH", "/v1/policies/p", object{})
		require.Equal(t, "method_not_allowed", a.Body["code"])
		require.ElementsMatch(t, []string{"DELETE", "GET", "HEAD", "PUT"}, strings.Split(a.Header.Get("Allow"), ", "))

		for _, contentType := range []string{
			"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "",
		} {
			refused := f.Send(t, "POST", "/v1/limits/p/check", `{"key":"k"}`, "Content-Type", contentType)
			require.Equal(t, 415, refused.Status, contentType)
			require.Equal(t, "unsupported_media_type", refused.Body["code"])
		}

		a = f.Want(t, 413, "POST", "/v1/limits/p/check", object{"key": strings.Repeat("k", 1<<20)})
		require.Equal(t, "payload_too_large", a.Body["code"])
	})

	t.Run("deadline passed: answers 504", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "p", rule("r", "gcra", 10, 1000))
		f.Want(t, 200, "GET", "/v1/limits/p?key=k", nil)
		require.NoError(t, f.redis.Server.Pause())
		defer func() { _ = f.redis.Server.Resume() }()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		a := f.Serve(t, apitest.NewRequest(ctx, t, "POST", "/v1/limits/p/check", `{"key":"k"}`))
		require.Equal(t, 504, a.Status, a.Text)
		require.Equal(t, "deadline_exceeded", a.Body["code"])
	})

	t.Run("internal error: hides its cause", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "p", rule("r", "gcra", 10, 3_600_000))
		require.NoError(t, f.redis.Client.LPush(t.Context(), "{rl:p/k}", "x").Err()) // a value of the wrong type
		a := f.Want(t, 500, "POST", "/v1/limits/p/check", object{"key": "k"})
		require.Equal(t, "internal", a.Body["code"])
		require.NotContains(t, a.Text, "WRONGTYPE")
		require.Contains(t, f.Log.String(), "WRONGTYPE", "the log contains the cause")
	})
}

func TestUnavailableStores(t *testing.T) {
	t.Parallel()
	t.Run("without Redis: on_unavailable decides, and the answer is marked as degraded", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for name, body := range map[string]object{
			"local": {"local_share": 0.2}, "open": {"on_unavailable": "allow"}, "closed": {"on_unavailable": "deny"},
		} {
			body["rules"] = []object{rule("r", "sliding_window", 10, 3_600_000)}
			f.Want(t, 201, "PUT", "/v1/policies/"+name, body)
		}
		require.NoError(t, f.redis.Server.Kill())
		for name, statuses := range map[string][]int{"local": {200, 200, 429}, "open": {200, 200, 200},
			"closed": {429, 429, 429}} {
			for _, status := range statuses {
				a := f.Want(t, status, "POST", "/v1/limits/"+name+"/check", object{"key": "k"})
				require.Equal(t, true, a.Body["degraded"])
				require.Equal(t, "limiter-local", a.Header.Get("Sluice-Degraded"))
				require.Equal(t, status == 429, a.Header.Get("Retry-After") != "")
			}
		}
		a := f.Want(t, 429, "POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "open", "key": "k"}, {"policy": "closed", "key": "k"}}})
		require.Equal(t, "limiter-local", a.Header.Get("Sluice-Degraded"))
		require.Equal(t, "limiter-local", f.Want(t, 200, "GET", "/v1/limits/local?key=k",
			nil).Header.Get("Sluice-Degraded"))
		require.Equal(t, "limiter-local", f.Want(t, 200, "POST", "/v1/limits/local/refund",
			object{"key": "k"}).Header.Get("Sluice-Degraded"))

		a = f.Want(t, 503, "DELETE", "/v1/limits/local?key=k", nil)
		require.Equal(t, "store_unavailable", a.Body["code"])
		require.Equal(t, "1", a.Header.Get("Retry-After"))
		require.NotContains(t, a.Text, "127.0.0.1", "callers see no internal address")

		require.NoError(t, f.redis.Server.Restart(t.Context()))
		require.Eventually(t, func() bool {
			return f.Send(t, "POST", "/v1/limits/local/check", object{"key": "k"}).Header.Get("Sluice-Degraded") == ""
		}, 10*time.Second, 20*time.Millisecond)
	})

	t.Run("without DynamoDB: cached policies are used, and the answer is marked as degraded", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "cached", rule("r", "gcra", 10, 3_600_000))
		store := &switchableStore{Store: f.store}
		f.cache = store.cache()
		f.Handler = f.routes()
		f.Want(t, 200, "POST", "/v1/limits/cached/check", object{"key": "k"})
		store.unavailable.Store(true)
		require.Eventually(t, func() bool {
			a := f.Want(t, 200, "GET", "/v1/limits/cached?key=k", nil)
			require.EqualValues(t, 9, a.Body["remaining"])
			return a.Header.Get("Sluice-Degraded") == "policies-cached"
		}, 10*time.Second, 10*time.Millisecond)
		a := f.Want(t, 503, "POST", "/v1/limits/unread/check", object{"key": "k"})
		require.Equal(t, "store_unavailable", a.Body["code"])
		require.NotEmpty(t, a.Header.Get("Retry-After"))

		require.NoError(t, f.redis.Server.Kill())
		a = f.Want(t, 200, "POST", "/v1/limits/cached/check", object{"key": "k"})
		require.Equal(t, "policies-cached, limiter-local", a.Header.Get("Sluice-Degraded"),
			"without both stores the limiter still answers")

		store.unavailable.Store(false)
		require.Eventually(t, func() bool {
			return f.Send(t, "GET", "/v1/limits/cached?key=k", nil).Header.Get("Sluice-Degraded") == "limiter-local"
		}, 10*time.Second, 10*time.Millisecond)
	})
}
