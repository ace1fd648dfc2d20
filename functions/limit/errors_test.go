package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryBadInputOfACheckIsNamed(t *testing.T) {
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
		"a cost beyond 64 bits": {"POST", "/v1/limits/p/check", `{"key":"k","cost":99999999999999999999}`,
			[]string{"cost"}},
		"key and cost at once": {"POST", "/v1/limits/p/check", object{"key": "", "cost": 0},
			[]string{"key", "cost"}},
		"a field that is none": {"POST", "/v1/limits/p/check", object{"key": "k", "costs": 1},
			[]string{"costs"}},
		"a field in capitals":          {"POST", "/v1/limits/p/check", object{"Key": "k"}, []string{"Key"}},
		"a field twice":                {"POST", "/v1/limits/p/check", `{"key":"k","key":"k"}`, []string{"key"}},
		"no JSON":                      {"POST", "/v1/limits/p/check", `{"key":`, []string{"key"}},
		"an array":                     {"POST", "/v1/limits/p/check", `[]`, []string{"body"}},
		"something after the object":   {"POST", "/v1/limits/p/check", `{"key":"k"} x`, []string{"body"}},
		"a policy's name that is none": {"POST", "/v1/limits/-p/check", object{"key": "k"}, []string{"policy"}},
		"no key in the query":          {"GET", "/v1/limits/p", nil, []string{"key"}},
		"two keys in the query":        {"GET", "/v1/limits/p?key=a&key=b", nil, []string{"key"}},
		"a parameter that is none":     {"DELETE", "/v1/limits/p?key=a&keys=b", nil, []string{"keys"}},
		"a broken query":               {"GET", "/v1/limits/p?key=%zz", nil, []string{"query"}},
		"no checks":                    {"POST", "/v1/limits/check", object{}, []string{"checks"}},
		"twenty-one checks":            {"POST", "/v1/limits/check", object{"checks": many}, []string{"checks"}},
		"bad checks, each by its place": {"POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "p"}, {"policy": "/", "key": "k", "cost": 0}}},
			[]string{"checks[0].key", "checks[1].policy", "checks[1].cost"}},
		"a check's field that is none": {"POST", "/v1/limits/check",
			object{"checks": []object{{"policy": "p", "key": "k", "n": 1}}}, []string{"checks[0].n"}},
		"a health check with a query": {"GET", "/v1/health?verbose=1", nil, []string{"verbose"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := f.Want(t, 400, tc.method, tc.target, tc.body)
			require.Equal(t, "invalid_request", a.Body["code"])
			require.Equal(t, tc.fields, a.InvalidFields(t))
		})
	}
	require.EqualValues(t, 10, f.Want(t, 200, "GET", "/v1/limits/p?key=k", nil).Body["remaining"],
		"none of it was charged")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 1000))
	for _, tc := range []struct {
		method, target, code string
		body                 any
	}{
		{"POST", "/v1/limits/nobody/check", "policy_not_found", object{"key": "k"}},
		{"POST", "/v1/limits/nobody/refund", "policy_not_found", object{"key": "k"}},
		{"GET", "/v1/limits/nobody?key=k", "policy_not_found", nil},
		{"DELETE", "/v1/limits/nobody?key=k", "policy_not_found", nil},
		{"POST", "/v1/limits/check", "policy_not_found",
			object{"checks": []object{{"policy": "p", "key": "k"}, {"policy": "nobody", "key": "k"}}}},
		{"GET", "/v1/policies/nobody", "policy_not_found", nil},
		{"DELETE", "/v1/policies/nobody", "policy_not_found", nil},
		{"GET", "/v1/limit", "not_found", nil},
		{"GET", "/", "not_found", nil},
		{"GET", "/v1/policies/", "not_found", nil},
	} {
		require.Equal(t, tc.code, f.Want(t, 404, tc.method, tc.target, tc.body).Body["code"], tc.target)
	}
	require.EqualValues(t, 10, f.Want(t, 200, "GET", "/v1/limits/p?key=k", nil).Body["remaining"],
		"a batch with an unknown policy charges nothing")
}

func TestOtherRefusalsOfTheContract(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 1000))

	a := f.Want(t, 405, "PATCH", "/v1/policies/p", object{})
	require.Equal(t, "method_not_allowed", a.Body["code"])
	require.ElementsMatch(t, []string{"DELETE", "GET", "HEAD", "PUT"}, strings.Split(a.Header.Get("Allow"), ", "))

	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded",
		"application/json; charset=latin1", ""} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/limits/p/check", strings.NewReader(`{"key":"k"}`))
		r.Header.Set("Content-Type", contentType)
		refused := f.Serve(t, r)
		require.Equal(t, 415, refused.Status, contentType)
		require.Equal(t, "unsupported_media_type", refused.Body["code"])
	}

	a = f.Want(t, 413, "POST", "/v1/limits/p/check", object{"key": strings.Repeat("k", 1<<20)})
	require.Equal(t, "payload_too_large", a.Body["code"])
}

func TestARequestWhoseTimeIsOverIsA504(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 1000))
	f.Want(t, 200, "GET", "/v1/limits/p?key=k", nil)
	require.NoError(t, f.redis.Server.Pause())
	defer func() { _ = f.redis.Server.Resume() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/limits/p/check", strings.NewReader(`{"key":"k"}`))
	r.Header.Set("Content-Type", "application/json")
	a := f.Serve(t, r)
	require.Equal(t, 504, a.Status, a.Text)
	require.Equal(t, "deadline_exceeded", a.Body["code"])
}

func TestWithoutRedisThePolicyDecidesAndTheAnswerSaysSo(t *testing.T) {
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
	require.NotContains(t, a.Text, "127.0.0.1", "nothing internal reaches a caller")

	require.NoError(t, f.redis.Server.Restart(t.Context()))
	require.Eventually(t, func() bool {
		return f.Send(t, "POST", "/v1/limits/local/check", object{"key": "k"}).Header.Get("Sluice-Degraded") == ""
	}, 10*time.Second, 20*time.Millisecond)
}

func TestWithoutThePolicyStoreTheKnownPoliciesWork(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "known", rule("r", "gcra", 10, 3_600_000))
	gate := &gatedStore{Store: f.store}
	f.cache = gate.cache()
	f.Handler = f.routes()
	f.Want(t, 200, "POST", "/v1/limits/known/check", object{"key": "k"})
	gate.away.Store(true)
	require.Eventually(t, func() bool {
		a := f.Want(t, 200, "GET", "/v1/limits/known?key=k", nil)
		require.EqualValues(t, 9, a.Body["remaining"])
		return a.Header.Get("Sluice-Degraded") == "policies-cached"
	}, 10*time.Second, 10*time.Millisecond)
	a := f.Want(t, 503, "POST", "/v1/limits/stranger/check", object{"key": "k"})
	require.Equal(t, "store_unavailable", a.Body["code"])
	require.NotEmpty(t, a.Header.Get("Retry-After"))

	require.NoError(t, f.redis.Server.Kill())
	a = f.Want(t, 200, "POST", "/v1/limits/known/check", object{"key": "k"})
	require.Equal(t, "policies-cached, limiter-local", a.Header.Get("Sluice-Degraded"),
		"both away, and still an answer")

	gate.away.Store(false)
	require.Eventually(t, func() bool {
		return f.Send(t, "GET", "/v1/limits/known?key=k", nil).Header.Get("Sluice-Degraded") == "limiter-local"
	}, 10*time.Second, 10*time.Millisecond)
}

func TestADefectShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.put(t, "p", rule("r", "gcra", 10, 3_600_000))
	require.NoError(t, f.redis.Client.LPush(t.Context(), "{rl:p/k}", "x").Err()) // a foreign value of another type
	a := f.Want(t, 500, "POST", "/v1/limits/p/check", object{"key": "k"})
	require.Equal(t, "internal", a.Body["code"])
	require.NotContains(t, a.Text, "WRONGTYPE")
	require.Contains(t, f.Log.String(), "WRONGTYPE", "the log has it")
}
