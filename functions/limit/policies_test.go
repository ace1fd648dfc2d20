package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

func TestPutPolicy(t *testing.T) {
	t.Parallel()
	t.Run("create, read, change and delete", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		body := object{
			"name": "login", "description": "d", "rules": []object{rule("r", "gcra", 10, 1000)},
			"overrides": []object{{"key": "bot-*", "mode": "deny"}},
		}
		created := f.Want(t, 201, "PUT", "/v1/policies/login", body)
		require.EqualValues(t, 1, created.Body["version"])
		require.Equal(t, "enforce", created.Body["mode"], "the answer contains the defaults")
		require.Equal(t, "local", created.Body["on_unavailable"])
		require.InDelta(t, 0.1, created.Body["local_share"], 0)
		require.Regexp(t, `^"1-[0-9a-f]+"$`, created.Header.Get("ETag"))
		read := f.Want(t, 200, "GET", "/v1/policies/login", nil)
		require.Equal(t, created.Body, read.Body)
		require.Equal(t, created.Header.Get("ETag"), read.Header.Get("ETag"))
		delete(body, "name")
		body["mode"] = "shadow"
		changed := f.Want(t, 200, "PUT", "/v1/policies/login", body)
		require.EqualValues(t, 2, changed.Body["version"])
		require.NotEqual(t, created.Header.Get("ETag"), changed.Header.Get("ETag"))
		deleted := f.Want(t, 204, "DELETE", "/v1/policies/login", nil)
		require.Empty(t, deleted.Text)
		f.Want(t, 404, "GET", "/v1/policies/login", nil)
		f.Want(t, 404, "DELETE", "/v1/policies/login", nil)
	})

	t.Run("change: applies immediately in the same instance", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		f.put(t, "p", rule("r", "sliding_window", 1, 3_600_000))
		f.Want(t, 200, "POST", "/v1/limits/p/check", object{"key": "k"})
		f.Want(t, 429, "POST", "/v1/limits/p/check", object{"key": "k"})
		f.Want(t, 200, "PUT", "/v1/policies/p", object{"rules": []object{rule("r", "sliding_window", 3, 3_600_000)}})
		require.EqualValues(t, 1, f.Want(t, 200, "POST", "/v1/limits/p/check", object{"key": "k"}).Body["remaining"],
			"one of three was used")
		f.Want(t, 204, "DELETE", "/v1/policies/p", nil)
		f.Want(t, 404, "POST", "/v1/limits/p/check", object{"key": "k"})
	})

	t.Run("entity tags: prevent lost changes", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		body := object{"rules": []object{rule("r", "gcra", 10, 1000)}}
		put := func(status int, headers ...string) apitest.Reply {
			return f.Want(t, status, "PUT", "/v1/policies/p", body, headers...)
		}
		require.Equal(t, "precondition_failed", put(412, "If-Match", "*").Body["code"])
		first := put(201, "If-None-Match", "*").Header.Get("ETag")
		put(412, "If-None-Match", "*")
		second := put(200, "If-Match", first).Header.Get("ETag")
		refused := put(412, "If-Match", first)
		require.Equal(t, second, refused.Body["etag"], "the current entity tag")
		put(200, "If-Match", "*")
		third := put(200, "If-Match", "W/"+f.Want(t, 200, "GET", "/v1/policies/p",
			nil).Header.Get("ETag")).Header.Get("ETag")
		for _, bad := range [][]string{{"If-None-Match", `"x"`}, {"If-None-Match", "*", "If-Match", third}} {
			require.Equal(t, "invalid_request", put(400, bad...).Body["code"])
		}
		f.Want(t, 412, "DELETE", "/v1/policies/p", nil, "If-Match", second)
		f.Want(t, 204, "DELETE", "/v1/policies/p", nil, "If-Match", third)
		f.Want(t, 412, "DELETE", "/v1/policies/p", nil, "If-Match", third)
	})

	t.Run("invalid fields: are all named", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		good := []object{rule("r", "gcra", 1, 1)}
		for name, tc := range map[string]struct {
			body   any
			fields []string
		}{
			"a name that differs from the path": {object{"name": "other", "rules": good}, []string{"name"}},
			"a name in a different case":        {object{"name": "P", "rules": good}, []string{"name"}},
			"no rules":                          {object{}, []string{"rules"}},
			"rules that are null":               {object{"rules": nil}, []string{"rules"}},
			"an unknown field":                  {object{"rules": good, "ttl": 1}, []string{"ttl"}},
			"an unknown field of a rule": {object{"rules": []object{{"name": "r", "limits": 1}}},
				[]string{"rules[0].limits"}},
			"a limit in quotes": {object{"rules": []object{{"name": "r", "limit": "10"}}},
				[]string{"rules[0].limit"}},
			"a version, which the store assigns": {object{"rules": good, "version": 3}, []string{"version"}},
			"an empty name":                      {object{"name": "", "rules": good}, []string{"name"}},
			"an empty mode":                      {object{"mode": "", "rules": good}, []string{"mode"}},
			"an empty on_unavailable": {
				object{"on_unavailable": "", "rules": good}, []string{"on_unavailable"},
			},
			"a local_share of 0":     {object{"local_share": 0, "rules": good}, []string{"local_share"}},
			"an empty list of rules": {object{"rules": []object{}}, []string{"rules"}},
			"a burst of 0": {
				object{"rules": []object{
					{"name": "r", "algorithm": "gcra", "limit": 1, "window_ms": 1, "burst": 0},
				}},
				[]string{"rules[0].burst"},
			},
			"several fields": {
				object{"name": "other", "mode": "x", "rules": []object{rule("r", "x", 0, 0)},
					"overrides": []object{{"key": ""}}},
				[]string{"name", "mode", "rules[0].algorithm", "rules[0].limit", "rules[0].window_ms",
					"overrides[0].key", "overrides[0]"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := f.Want(t, 400, "PUT", "/v1/policies/p", tc.body)
				require.Equal(t, "invalid_request", a.Body["code"])
				require.Equal(t, tc.fields, a.InvalidFields(t))
			})
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			a := f.Want(t, 400, method, "/v1/policies/-bad", object{"rules": good})
			require.Contains(t, a.InvalidFields(t), "name", method)
		}
	})
}

func TestListPolicies(t *testing.T) {
	t.Parallel()
	f := start(t)
	empty := f.Want(t, 200, "GET", "/v1/policies", nil)
	require.Equal(t, object{"policies": []any{}}, empty.Body)
	want := map[string]bool{}
	for i := range 5 {
		name := fmt.Sprintf("p%d", i)
		f.put(t, name, rule("r", "gcra", 1, 1))
		want[name] = true
	}
	got := map[string]bool{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		a := f.Want(t, 200, "GET", "/v1/policies?limit=2&cursor="+cursor, nil)
		list, _ := a.Body["policies"].([]any)
		require.LessOrEqual(t, len(list), 2)
		for _, entry := range list {
			p, _ := entry.(object)
			name, _ := p["name"].(string)
			require.False(t, got[name], "%s is listed twice", name)
			got[name] = true
		}
		cursor, _ = a.Body["next_cursor"].(string)
		require.Less(t, pages, 5)
	}
	require.Equal(t, want, got)
	for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit",
		"cursor=%3F": "cursor", "page=2": "page"} {
		require.Equal(t, []string{field}, f.Want(t, 400, "GET", "/v1/policies?"+query, nil).InvalidFields(t))
	}
}
