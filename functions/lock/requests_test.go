package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/httpapi/apitest"
)

const (
	report  = "/v1/locks/report"
	pool    = "/v1/semaphores/pool"
	goodKey = "a-token-of-16-ch" // 16 characters
)

// with returns a copy of a body with one member set.
func with(body object, member string, value any) object {
	out := object{member: value}
	for name, v := range body {
		if name != member {
			out[name] = v
		}
	}
	return out
}

// routes maps every route that takes a body to a valid body.
func routes() map[string]object {
	return map[string]object{
		report + "/acquire": {}, report + "/renew": {"token": goodKey}, report + "/release": {"token": goodKey},
		pool + "/acquire": {"capacity": 1}, pool + "/renew": {"token": goodKey}, pool + "/release": {"token": goodKey},
	}
}

// requireUntouched requires that Redis is empty.
func (f *fixture) requireUntouched(t testing.TB) {
	t.Helper()
	keys, err := f.redis.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "a refused request writes nothing")
}

func TestInvalidRequest(t *testing.T) {
	t.Parallel()
	t.Run("an invalid field is named on every route", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		acquires := []string{report + "/acquire", pool + "/acquire"}
		renews := []string{report + "/renew", pool + "/renew"}
		releases := []string{report + "/release", pool + "/release"}
		timed := slices.Concat(acquires, renews)
		tokens := slices.Concat(timed, releases)
		for name, tc := range map[string]struct {
			field  string
			value  any
			routes []string
		}{
			"a ttl of 99 ms":            {"ttl_ms", 99, timed},
			"a ttl of zero":             {"ttl_ms", 0, timed},
			"a negative ttl":            {"ttl_ms", -10_000, timed},
			"a ttl over an hour":        {"ttl_ms", 3_600_001, timed},
			"a ttl that would overflow": {"ttl_ms", int64(1<<63 - 1), timed},
			// converted to nanoseconds, this value overflows 64 bits and becomes 10 s
			"a ttl that would overflow to a valid time": {"ttl_ms", int64(18_446_744_083_710), timed},
			"a ttl with a fraction":                     {"ttl_ms", 1000.5, timed},
			"a ttl in quotes":                           {"ttl_ms", "1000", timed},
			"a negative wait":                           {"wait_ms", -1, acquires},
			"a wait over 20 s":                          {"wait_ms", 20_001, acquires},
			"a wait that would overflow":                {"wait_ms", int64(-1 << 63), acquires},
			"an empty token":                            {"token", "", tokens},
			"a token of 15 characters":                  {"token", strings.Repeat("t", 15), tokens},
			"a token of 129 characters":                 {"token", strings.Repeat("t", 129), tokens},
			"a token with a space":                      {"token", "sixteen letters and", tokens},
			"a token with a line break":                 {"token", "sixteen\nletters\nand", tokens},
			"a token that is not ASCII":                 {"token", strings.Repeat("ä", 16), tokens},
			"a token that is a number":                  {"token", 1_234_567_890_123_456, tokens},
			"an owner of 257 bytes":                     {"owner", strings.Repeat("o", 257), acquires},
			"an owner with a line break":                {"owner", "ann\nbob", acquires},
			"an owner with a NUL":                       {"owner", "ann\x00", acquires},
			"an unknown mode":                           {"mode", "Exclusive", acquires[:1]},
			"a mode for a semaphore":                    {"mode", "shared", acquires[1:]},
			"metadata that is an array":                 {"metadata", []int{1}, acquires},
			"metadata that is a string":                 {"metadata", "{}", acquires},
			"metadata of 1025 bytes": {"metadata", object{"k": strings.Repeat("m", 1025-len(`{"k":""}`))},
				acquires},
			"a capacity for a lock":               {"capacity", 1, acquires[:1]},
			"a capacity of zero":                  {"capacity", 0, acquires[1:]},
			"a negative capacity":                 {"capacity", -1, acquires[1:]},
			"a capacity over 10 000":              {"capacity", 10_001, acquires[1:]},
			"an unknown consistency":              {"consistency", "eventual", tokens},
			"a quorum that is not deployed":       {"consistency", "quorum", tokens},
			"a table that is not deployed":        {"consistency", "strong", tokens},
			"an unknown field":                    {"ttl", 1000, tokens},
			"a field in capitals":                 {"TTL_MS", 1000, tokens},
			"an owner for a renewal or a release": {"owner", "ann", slices.Concat(renews, releases)},
			"a ttl for a release":                 {"ttl_ms", 1000, releases},
		} {
			for _, route := range tc.routes {
				t.Run(name+", "+route, func(t *testing.T) {
					body := with(routes()[route], tc.field, tc.value)
					a := f.WantProblem(t, 400, "invalid_request", "POST", route, body)
					require.Equal(t, []string{tc.field}, a.InvalidFields(t))
					require.NotContains(t, a.Header, "Retry-After", "waiting does not make the request valid")
				})
			}
		}
		f.requireUntouched(t)
	})

	t.Run("a body that is not an object is refused on every route", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for name, tc := range map[string]struct{ body, field string }{
			"a truncated body":      {`{"token":`, "token"},
			"not JSON":              {`token`, "body"},
			"an array":              {`[]`, "body"},
			"null":                  {`null`, "body"},
			"text after the object": {`{} {}`, "body"},
			"a field twice":         {`{"token":"a-token-of-16-ch","token":"a-token-of-16-cx"}`, "token"},
			"broken UTF-8":          {"{\"token\":\"\xff\"}", "token"},
		} {
			for route := range routes() {
				t.Run(name+", "+route, func(t *testing.T) {
					a := f.WantProblem(t, 400, "invalid_request", "POST", route, tc.body)
					require.Equal(t, []string{tc.field}, a.InvalidFields(t))
				})
			}
		}
		f.requireUntouched(t)
	})

	t.Run("all invalid fields are named in one answer", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for name, tc := range map[string]struct {
			method, target string
			body           any
			fields         []string
		}{
			"of an acquire": {"POST", "/v1/locks/-/acquire", object{
				"ttl_ms": 1, "wait_ms": -1, "token": "x", "owner": "\n", "mode": "x", "metadata": 1, "consistency": "x",
			}, []string{"name", "ttl_ms", "wait_ms", "token", "owner", "metadata", "mode", "consistency"}},
			"of an acquire of a semaphore": {"POST", "/v1/semaphores/-/acquire",
				object{"ttl_ms": 0, "token": "", "consistency": "strong"},
				[]string{"name", "ttl_ms", "token", "capacity", "consistency"}},
			"of a renewal": {"POST", "/v1/locks/-/renew", object{"ttl_ms": 0, "consistency": "x"},
				[]string{"name", "token", "ttl_ms", "consistency"}},
			"of a release": {"POST", "/v1/locks/-/release", object{"consistency": "quorum"},
				[]string{"name", "token", "consistency"}},
			"of an inspection": {"GET", "/v1/locks/-?consistency=x&ttl=1", nil,
				[]string{"name", "ttl", "consistency"}},
			"of a forced release": {"DELETE", "/v1/semaphores/-?consistency=quorum", nil,
				[]string{"name", "consistency"}},
			"a release without a token": {"POST", report + "/release", nil, []string{"token"}},
			"a renewal without a token": {"POST", pool + "/renew", object{}, []string{"token"}},
			"a parameter twice": {"GET", report + "?consistency=redis&consistency=redis", nil,
				[]string{"consistency"}},
			"a broken query": {"DELETE", report + "?consistency=%zz", nil, []string{"query"}},
			"no capacity":    {"POST", pool + "/acquire", object{}, []string{"capacity"}},
		} {
			t.Run(name, func(t *testing.T) {
				a := f.WantProblem(t, 400, "invalid_request", tc.method, tc.target, tc.body)
				require.Equal(t, tc.fields, a.InvalidFields(t))
			})
		}
		f.requireUntouched(t)
	})

	t.Run("an invalid name is refused on every route", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for name, good := range map[string]bool{
			"a": true, "order:42.x_y-z": true, strings.Repeat("n", 128): true,
			strings.Repeat("n", 129): false, "_a": false, "a%20b": false, "a%7Bb%7D": false, "a%2Fb": false,
			"%C3%A4": false, "a%00": false,
		} {
			for _, base := range []string{"/v1/locks/", "/v1/semaphores/"} {
				if good {
					require.Equal(t, name, f.Want(t, 200, "GET", base+name, nil).Body["name"])
					continue
				}
				for _, call := range []struct{ method, path string }{
					{"GET", ""}, {"DELETE", ""}, {"POST", "/acquire"}, {"POST", "/renew"}, {"POST", "/release"},
				} {
					a := f.WantProblem(t, 400, "invalid_request", call.method, base+name+call.path, nil)
					require.Contains(t, a.InvalidFields(t), "name", "%s %s", call.method, base+name+call.path)
				}
			}
		}
	})

	t.Run("an unknown path or method is refused", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for _, target := range []string{
			"/", "/v1/locks", "/v1/locks/", "/v1/semaphores", report + "/", report + "/steal",
			"/v1//locks/report", "/v2/locks/report", "/v1/Locks/report",
		} {
			f.WantProblem(t, 404, "not_found", "GET", target, nil)
		}
		for _, base := range []string{report, pool} {
			for _, call := range []string{"/acquire", "/renew", "/release"} {
				a := f.WantProblem(t, 405, "method_not_allowed", "GET", base+call, nil)
				require.Equal(t, "POST", a.Header.Get("Allow"))
			}
			for _, method := range []string{"POST", "PUT", "PATCH", "BREW"} {
				a := f.WantProblem(t, 405, "method_not_allowed", method, base, nil)
				require.ElementsMatch(t, []string{"DELETE", "GET", "HEAD"}, strings.Split(a.Header.Get("Allow"), ", "))
			}
		}
	})

	t.Run("a wrong media type or a body over 1 MiB is refused", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for route, body := range routes() {
			for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded",
				"application/json; charset=latin1", "*/*", ""} {
				r := apitest.NewRequest(t.Context(), t, "POST", route, with(body, "consistency", "x"))
				r.Header.Set("Content-Type", contentType)
				a := f.Serve(t, r)
				require.Equal(t, 415, a.Status, "%s as %s: %s", route, contentType, a.Text)
				require.Equal(t, "unsupported_media_type", a.Body["code"])
			}
			for _, size := range []int{1<<20 + 1, 8 << 20} {
				f.WantProblem(t, 413, "payload_too_large", "POST", route,
					`{"token":"`+strings.Repeat("t", size-len(`{"token":""}`))+`"}`)
			}
			a := f.WantProblem(t, 400, "invalid_request", "POST", route,
				`{"token":"`+strings.Repeat("t", 1<<20-len(`{"token":""}`))+`"}`)
			require.Contains(t, a.InvalidFields(t), "token", "a body of 1 MiB is read")
		}
		f.requireUntouched(t)
	})
}

func TestValidRequest(t *testing.T) {
	t.Parallel()
	t.Run("the minimum and the maximum of every range are accepted", func(t *testing.T) {
		t.Parallel()
		f := start(t)
		for name, body := range map[string]object{
			"the shortest ttl":      {"ttl_ms": 100},
			"the longest ttl":       {"ttl_ms": 3_600_000},
			"the longest wait":      {"wait_ms": 20_000},
			"no wait":               {"wait_ms": 0},
			"the shortest token":    {"token": strings.Repeat("!", 16)},
			"the longest token":     {"token": strings.Repeat("~", 128)},
			"the longest owner":     {"owner": strings.Repeat("ä", 128)},
			"the largest metadata":  {"metadata": object{"k": strings.Repeat("m", 1024-len(`{"k":""}`))}},
			"metadata that is null": {"metadata": nil},
			"an explicit redis":     {"consistency": "redis"},
		} {
			lease := f.Want(t, 200, "POST", report+"/acquire", body)
			if ttl, ok := body["ttl_ms"].(int); ok {
				require.EqualValues(t, ttl, lease.Number(t, "ttl_ms"), name)
				length := lease.Instant(t, "expires_at").Sub(lease.Instant(t, "acquired_at"))
				require.EqualValues(t, ttl, length.Milliseconds(), name)
			}
			f.Want(t, 200, "DELETE", report, nil)
			for _, capacity := range []int{1, 10_000} {
				f.Want(t, 200, "POST", pool+"/acquire", with(body, "capacity", capacity))
				f.Want(t, 200, "DELETE", pool, nil)
			}
		}
		for _, base := range []string{report, pool} {
			lease := f.Want(t, 200, "POST", base+"/acquire", with(routes()[base+"/acquire"], "ttl_ms", 60_000))
			for _, ttl := range []int{3_600_000, 100} {
				renewed := f.Want(t, 200, "POST", base+"/renew", object{"token": lease.Body["token"], "ttl_ms": ttl})
				require.EqualValues(t, ttl, renewed.Number(t, "ttl_ms"))
			}
		}
	})
}
