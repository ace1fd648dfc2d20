package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
)

type rule struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

type request struct {
	TTL   int64             `json:"ttl_ms"`
	Token string            `json:"token"`
	Share float64           `json:"share"`
	Deep  bool              `json:"deep"`
	Rules []rule            `json:"rules"`
	Map   map[string]string `json:"map"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body, contentType string
		code              fault.Code
		field, message    string
	}{
		"malformed JSON names the field": {body: `{"ttl_ms": }`, code: fault.InvalidRequest, field: "ttl_ms"},
		"a truncated body is refused":    {body: `{"ttl_ms": 5`, code: fault.InvalidRequest},
		"an unknown field is refused": {body: `{"ttl": 5}`, code: fault.InvalidRequest, field: "ttl",
			message: "not a field"},
		"a field in another case is refused": {body: `{"TTL_MS": 5}`, code: fault.InvalidRequest,
			field: "TTL_MS"},
		"a duplicate field is refused": {body: `{"ttl_ms": 5, "ttl_ms": 6}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "twice"},
		"a string for a number is refused": {body: `{"ttl_ms": "5"}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "whole number"},
		"a fraction for a whole number is refused": {body: `{"ttl_ms": 5.5}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "whole number"},
		"a number over 64 bits is refused": {body: `{"ttl_ms": 99999999999999999999}`,
			code: fault.InvalidRequest, field: "ttl_ms"},
		"a number for a string is refused": {body: `{"token": 5}`, code: fault.InvalidRequest, field: "token",
			message: "string"},
		"a string for a boolean is refused": {body: `{"deep": "x"}`, code: fault.InvalidRequest, field: "deep",
			message: "must be true or false"},
		"an object for an array is refused": {body: `{"rules": {}}`, code: fault.InvalidRequest, field: "rules",
			message: "must be an array"},
		"a nested field has its path": {body: `{"rules": [{"limit": 1}, {"limit": "x"}]}`,
			code: fault.InvalidRequest, field: "rules[1].limit"},
		"an unknown nested field has its path": {body: `{"rules": [{"limits": 1}]}`, code: fault.InvalidRequest,
			field: "rules[0].limits"},
		"a value of a map has its path": {body: `{"map": {"a": 1}}`, code: fault.InvalidRequest,
			field: "map.a"},
		"an array is refused": {body: `[]`, code: fault.InvalidRequest, field: "body",
			message: "object"},
		"null is refused": {body: `null`, code: fault.InvalidRequest, field: "body",
			message: "object"},
		"anything after the object is refused": {body: `{} {}`, code: fault.InvalidRequest},
		"invalid UTF-8 is refused": {body: "{\"token\": \"\xff\"}", code: fault.InvalidRequest,
			field: "token"},
		"another media type is refused": {body: `{}`, contentType: "text/plain",
			code: fault.UnsupportedMediaType},
		"a form is refused": {body: `{}`, contentType: "application/x-www-form-urlencoded",
			code: fault.UnsupportedMediaType},
		"another charset is refused": {body: `{}`, contentType: "application/json; charset=latin1",
			code: fault.UnsupportedMediaType},
		"a body over 1 MiB is refused": {body: `{"token": "` + strings.Repeat("x", httpapi.MaxBody) + `"}`,
			code: fault.PayloadTooLarge},
		"a charset of UTF-8 is accepted": {body: `{"ttl_ms": 5}`,
			contentType: "application/json; charset=UTF-8"},
		"an empty body is an empty object":     {body: ``},
		"white space is an empty object":       {body: " \n", contentType: "text/plain"},
		"a null field is like an absent field": {body: `{"ttl_ms": null}`},
		"1.0 is a whole number":                {body: `{"share": 1.0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json")
			if tc.contentType != "" {
				r.Header.Set("Content-Type", tc.contentType)
			}
			var into request
			err := httpapi.Decode(r, &into)
			require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
			if tc.code != fault.InvalidRequest {
				return
			}
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			require.Len(t, f.Fields, 1)
			if tc.field != "" {
				require.Equal(t, tc.field, f.Fields[0].Field, "%v", err)
			}
			require.Contains(t, f.Fields[0].Message, tc.message)
			require.NotContains(t, err.Error(), "Go ", "the message names no Go type")
		})
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ query, field string }{
		"an allowed parameter":  {"key=a%2Fb", ""},
		"no parameter":          {"", ""},
		"an unknown parameter":  {"key=a&keys=b", "keys"},
		"a duplicate parameter": {"key=a&key=b", "key"},
		"an invalid escape":     {"key=%zz", "query"},
		"a semicolon":           {"key=a;b=c", "query"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/?"+tc.query, nil)
			_, err := httpapi.Query(r, "key")
			if tc.field == "" {
				require.NoError(t, err)
				return
			}
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			require.Equal(t, tc.field, f.Fields[0].Field)
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"ttl_ms":1}`, `{"rules":[{"limit":-1}]}`, `{"map":{"":""}}`, "\xff",
		`{"a":{"b":[1e999]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		var into request
		err := httpapi.Decode(r, &into)
		if err != nil && fault.CodeOf(err) != fault.InvalidRequest && fault.CodeOf(err) != fault.PayloadTooLarge {
			t.Fatalf("invalid input must not cause an internal error: %v", err)
		}
	})
}
