package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
)

// put stores a policy with a unique name and returns the name.
func put(t *testing.T, policy object) string {
	t.Helper()
	name := redistest.Name("policy")
	want(t, 201, "PUT", "/v1/policies/"+name, policy)
	return name
}

func rule(name, algorithm string, limit, window int) object {
	return object{"name": name, "algorithm": algorithm, "limit": limit, "window_ms": window}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("allow, deny, refund and reset", func(t *testing.T) {
		t.Parallel()
		burst := rule("burst", "token_bucket", 10, 1_000)
		burst["burst"] = 20
		name := put(t, object{"rules": []object{burst, rule("hourly", "sliding_window", 3, 3_600_000)}})
		path := "/v1/limits/" + name
		key := "user/{1} ä*"

		fresh := want(t, 200, "GET", path+"?key="+url.QueryEscape(key), nil)
		require.EqualValues(t, 3, fresh.number("remaining"))
		for i := range 3 {
			a := want(t, 200, "POST", path+"/check", object{"key": key})
			require.EqualValues(t, 2-i, a.number("remaining"))
			require.Equal(t, `"burst";q=20;w=1, "hourly";q=3;w=3600`, a.header.Get("RateLimit-Policy"))
			require.Equal(t, fmt.Sprintf(`"hourly";r=%d;t=3600`, 2-i), a.header.Get("RateLimit"))
		}
		denied := want(t, 429, "POST", path+"/check", object{"key": key})
		require.Equal(t, "quota_exceeded", denied.string("code"))
		require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", denied.string("type"))
		require.Equal(t, []any{"hourly"}, denied.body["violated-policies"])
		require.Equal(t, "hourly", denied.string("violated"))
		require.Equal(t, false, denied.body["allowed"])
		require.InDelta(t, 3_600_000, denied.number("retry_after_ms"), 60_000)
		require.NotEmpty(t, denied.header.Get("Retry-After"))

		never := want(t, 429, "POST", path+"/check", object{"key": key, "cost": 4})
		require.Nil(t, never.body["retry_after_ms"], "a cost above the limit has no retry time")
		require.Empty(t, never.header.Get("Retry-After"))

		require.EqualValues(t, 1, want(t, 200, "POST", path+"/refund", object{"key": key}).number("remaining"))
		want(t, 200, "POST", path+"/check", object{"key": key})
		refunded := want(t, 200, "POST", path+"/refund", object{"key": key, "cost": 100})
		require.EqualValues(t, 3, refunded.number("remaining"), "a refund must not exceed the limit")
		want(t, 200, "DELETE", path+"?key="+url.QueryEscape(key), nil)
		require.EqualValues(t, 3, want(t, 200, "GET", path+"?key="+url.QueryEscape(key), nil).number("remaining"))
	})

	t.Run("are charged all or none", func(t *testing.T) {
		t.Parallel()
		wide := put(t, object{"rules": []object{rule("r", "gcra", 10, 60_000)}})
		narrow := put(t, object{"rules": []object{rule("r", "fixed_window", 1, 3_600_000)}})
		checks := object{"checks": []object{{"policy": wide, "key": "k"}, {"policy": narrow, "key": "k"}}}
		want(t, 200, "POST", "/v1/limits/check", checks)
		denied := want(t, 429, "POST", "/v1/limits/check", checks)
		require.Len(t, denied.body["decisions"], 2)
		require.EqualValues(t, 9, want(t, 200, "GET", "/v1/limits/"+wide+"?key=k", nil).number("remaining"),
			"a denied call must not charge the first limit")
	})

	t.Run("follow overrides and modes", func(t *testing.T) {
		t.Parallel()
		name := put(t, object{
			"rules": []object{rule("r", "sliding_window_counter", 1, 3_600_000)},
			"overrides": []object{
				{"key": "gold", "rules": []object{rule("r", "sliding_window_counter", 3, 3_600_000)}},
				{"key": "bot-*", "mode": "deny"}, {"key": "bot-good*", "mode": "allow"},
				{"key": "new", "mode": "shadow"},
			},
		})
		check := func(key string) int { return call(t, "POST", "/v1/limits/"+name+"/check", object{"key": key}).status }
		require.Equal(t, []int{200, 429}, []int{check("plain"), check("plain")})
		require.Equal(t, []int{200, 200, 200, 429}, []int{check("gold"), check("gold"), check("gold"), check("gold")})
		require.Equal(t, []int{429, 200, 200}, []int{check("bot-bad"), check("bot-good-1"), check("bot-good-1")})
		require.Equal(t, 200, check("new"))
		shadow := want(t, 200, "POST", "/v1/limits/"+name+"/check", object{"key": "new"})
		require.Equal(t, true, shadow.body["allowed"])
		require.Equal(t, "r", shadow.string("violated"))
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	t.Run("changed: take effect within five seconds, and the charges stay", func(t *testing.T) {
		t.Parallel()
		name := put(t, object{"rules": []object{rule("r", "sliding_window", 2, 3_600_000)}})
		path := "/v1/limits/" + name + "/check"
		want(t, 200, "POST", path, object{"key": "k"})
		want(t, 200, "POST", path, object{"key": "k"})
		want(t, 429, "POST", path, object{"key": "k"})
		want(t, 200, "PUT", "/v1/policies/"+name, object{"rules": []object{rule("r", "sliding_window", 4, 3_600_000)}})
		changed := time.Now()
		var first answer
		require.Eventually(t, func() bool { // a denial charges nothing, so repeated checks are safe
			first = call(t, "POST", path, object{"key": "k"})
			return first.status == 200
		}, 6*time.Second, 20*time.Millisecond)
		require.EqualValues(t, 1, first.number("remaining"), "the two charges before the change must count")
		<-time.After(time.Until(changed.Add(5 * time.Second)))
		for range 40 { // every instance must use the new policy
			require.EqualValues(t, 4, call(t, "GET", "/v1/limits/"+name+"?key=k", nil).number("limit"))
		}
	})

	t.Run("are stored with ETags and listed", func(t *testing.T) {
		t.Parallel()
		name := redistest.Name("policy")
		path := "/v1/policies/" + name
		body := object{"name": name, "description": "d", "rules": []object{rule("r", "gcra", 1, 1000)}}
		require.Equal(t, "policy_not_found", want(t, 404, "GET", path, nil).string("code"))
		want(t, 412, "PUT", path, body, "If-Match", `"1-x"`)
		made := want(t, 201, "PUT", path, body, "If-None-Match", "*")
		require.EqualValues(t, 1, made.number("version"))
		want(t, 412, "PUT", path, body, "If-None-Match", "*")
		read := want(t, 200, "GET", path, nil)
		require.Equal(t, made.header.Get("ETag"), read.header.Get("ETag"))
		body["mode"] = "shadow"
		changed := want(t, 200, "PUT", path, body, "If-Match", read.header.Get("ETag"))
		require.EqualValues(t, 2, changed.number("version"))
		conflict := want(t, 412, "PUT", path, body, "If-Match", read.header.Get("ETag"))
		require.Equal(t, "precondition_failed", conflict.string("code"))
		require.NotEmpty(t, want(t, 200, "GET", "/v1/policies?limit=1", nil).body["policies"])
		want(t, 412, "DELETE", path, nil, "If-Match", read.header.Get("ETag"))
		want(t, 204, "DELETE", path, nil, "If-Match", changed.header.Get("ETag"))
		want(t, 404, "DELETE", path, nil)
	})
}

func TestInvalidPolicies(t *testing.T) {
	t.Parallel()
	bad := object{
		"name": "other", "mode": "maybe", "on_unavailable": "hope", "local_share": 2,
		"rules": []object{{"name": "r", "algorithm": "leaky", "limit": 0, "window_ms": 0},
			{"name": "r", "algorithm": "fixed_window", "limit": 1, "window_ms": 1, "burst": 2}},
		"overrides": []object{{"key": "a*b", "mode": "deny"}, {"key": "x"}},
	}
	a := want(t, 400, "PUT", "/v1/policies/"+redistest.Name("policy"), bad)
	var fields []any
	for _, e := range a.body["errors"].([]any) {
		fields = append(fields, e.(object)["field"])
	}
	require.ElementsMatch(t, []any{
		"name", "mode", "on_unavailable", "local_share", "rules[0].algorithm", "rules[0].limit", "rules[0].window_ms",
		"rules[1].name", "rules[1].burst",
		"overrides[0].key", "overrides[1]",
	}, fields)

	name := put(t, object{"rules": []object{rule("r", "gcra", 1, 1000)}})
	for title, tc := range map[string]struct {
		method, path string
		body         any
		status       int
	}{
		"no key":             {"POST", "/v1/limits/" + name + "/check", object{}, 400},
		"a cost of zero":     {"POST", "/v1/limits/" + name + "/check", object{"key": "k", "cost": 0}, 400},
		"a cost over 10 000": {"POST", "/v1/limits/" + name + "/check", object{"key": "k", "cost": 10_001}, 400},
		"a key of 513 bytes": {"POST", "/v1/limits/" + name + "/check", object{"key": string(make([]byte, 513))},
			400},
		"no key in the query": {"GET", "/v1/limits/" + name, nil, 400},
		"an unknown policy":   {"POST", "/v1/limits/nobody/check", object{"key": "k"}, 404},
		"no checks":           {"POST", "/v1/limits/check", object{"checks": []object{}}, 400},
		"an If-None-Match with an ETag": {"PUT", "/v1/policies/" + name,
			object{"rules": []object{rule("r", "gcra", 1, 1000)}}, 400},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var headers []string
			if tc.method == "PUT" {
				headers = []string{"If-None-Match", `"1"`}
			}
			want(t, tc.status, tc.method, tc.path, tc.body, headers...)
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	require.Eventually(t, func() bool {
		a := call(t, "GET", "/v1/health", nil)
		for _, row := range a.body["checks"].([]any) {
			if row.(object)["status"] != "ok" {
				return false
			}
		}
		return a.status == 200
	}, 10*time.Second, 50*time.Millisecond)
}
