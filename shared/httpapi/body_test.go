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

func TestDecodeIsStrictAndNamesTheField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body, contentType string
		code              fault.Code
		field, message    string
	}{
		"malformed JSON names where it breaks": {body: `{"ttl_ms": }`, code: fault.InvalidRequest, field: "ttl_ms"},
		"a cut body is refused":                {body: `{"ttl_ms": 5`, code: fault.InvalidRequest},
		"an unknown field is refused": {body: `{"ttl": 5}`, code: fault.InvalidRequest, field: "ttl",
			message: "not a field"},
		"a field in other case is unknown": {body: `{"TTL_MS": 5}`, code: fault.InvalidRequest,
			field: "TTL_MS"},
		"a doubled field is refused": {body: `{"ttl_ms": 5, "ttl_ms": 6}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "twice"},
		"a string is no number": {body: `{"ttl_ms": "5"}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "whole number"},
		"a fraction is no whole number": {body: `{"ttl_ms": 5.5}`, code: fault.InvalidRequest,
			field: "ttl_ms", message: "whole number"},
		"a number over 64 bits is refused": {body: `{"ttl_ms": 99999999999999999999}`,
			code: fault.InvalidRequest, field: "ttl_ms"},
		"a number is no string": {body: `{"token": 5}`, code: fault.InvalidRequest, field: "token",
			message: "string"},
		"a string is no boolean": {body: `{"deep": "x"}`, code: fault.InvalidRequest, field: "deep",
			message: "true or false"},
		"an object is no array": {body: `{"rules": {}}`, code: fault.InvalidRequest, field: "rules",
			message: "array"},
		"a nested field has its whole path": {body: `{"rules": [{"limit": 1}, {"limit": "x"}]}`,
			code: fault.InvalidRequest, field: "rules[1].limit"},
		"a nested unknown field has its path": {body: `{"rules": [{"limits": 1}]}`, code: fault.InvalidRequest,
			field: "rules[0].limits"},
		"a map's value has its path": {body: `{"map": {"a": 1}}`, code: fault.InvalidRequest,
			field: "map.a"},
		"an array is no request": {body: `[]`, code: fault.InvalidRequest, field: "body",
			message: "object"},
		"a null is no request": {body: `null`, code: fault.InvalidRequest, field: "body",
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
		"a body of the media type JSON is taken": {body: `{"ttl_ms": 5}`,
			contentType: "application/json; charset=UTF-8"},
		"an empty body is an empty request":        {body: ``},
		"a body of white space is an empty one":    {body: " \n", contentType: "text/plain"},
		"a null field is as if it were not there":  {body: `{"ttl_ms": null}`},
		"a whole number written with zeros is one": {body: `{"share": 1.0}`},
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
			require.NotContains(t, err.Error(), "Go ", "no word of the decoder's own types")
		})
	}
}

func TestQueryTakesOnlyNamedParametersOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ query, field string }{
		"a known parameter":       {"key=a%2Fb", ""},
		"none":                    {"", ""},
		"an unknown parameter":    {"key=a&keys=b", "keys"},
		"a doubled parameter":     {"key=a&key=b", "key"},
		"a broken escape":         {"key=%zz", "query"},
		"a semicolon is no break": {"key=a;b=c", "query"},
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
			t.Fatalf("bad input is never a defect: %v", err)
		}
	})
}
