package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// FuzzRequest requires that no request causes a panic or a 5xx status, except for an unhealthy
// health report.
func FuzzRequest(f *testing.F) {
	fix := start(f)
	fix.put(f, "p", rule("r", "gcra", 10, 1000), rule("s", "sliding_window", 10, 1000))
	for _, seed := range [][3]string{
		{"POST", "/v1/limits/p/check", `{"key":"k","cost":2}`},
		{"POST", "/v1/limits/p/check", `{"key":"k","cost":1e99}`},
		{"POST", "/v1/limits/p/refund", `{"key":"{}\u0000*"}`},
		{"GET", "/v1/limits/p?key=a%20b", ""},
		{"DELETE", "/v1/limits/p?key=%ff", ""},
		{"POST", "/v1/limits/check", `{"checks":[{"policy":"p","key":"k"},{"policy":"p","key":"k","cost":3}]}`},
		{"PUT", "/v1/policies/q",
			`{"mode":"shadow","local_share":0.5,
			"rules":[{"name":"r","algorithm":"token_bucket","limit":1,"window_ms":1,"burst":2}],
			"overrides":[{"key":"a*","mode":"deny"}]}`},
		{"PUT", "/v1/policies/q", `{"rules":[{"limit":9223372036854775807,"window_ms":-9223372036854775808}]}`},
		{"DELETE", "/v1/policies/q", ""},
		{"GET", "/v1/policies?limit=2&cursor=cA", ""},
		{"PATCH", "/v1//policies/../%2e", `{`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", Body: body,
			Headers: map[string]string{"content-type": "application/json"}}
		e.RawPath, e.RawQueryString, _ = strings.Cut(target, "?")
		e.RequestContext.HTTP.Method = method
		payload, err := json.Marshal(e)
		if err != nil {
			return
		}
		answer, err := fix.lambda(fix.Handler)(t.Context(), payload)
		if err != nil {
			t.Fatalf("%s %q: %v", method, target, err)
		}
		response, ok := answer.(events.APIGatewayV2HTTPResponse)
		if !ok || response.StatusCode < 200 || response.StatusCode >= 500 && e.RawPath != "/v1/health" {
			t.Fatalf("%s %q %q: %+v", method, target, body, answer)
		}
		if response.Body != "" && !json.Valid([]byte(response.Body)) {
			t.Fatalf("%s %q: the answer is not JSON: %s", method, target, response.Body)
		}
	})
}

// FuzzAuthorizer requires that no event causes a panic or is authorized under a policy that denies
// everything.
func FuzzAuthorizer(f *testing.F) {
	fix := start(f)
	fix.Want(f, http.StatusCreated, http.MethodPut, "/v1/policies/closed",
		object{"mode": "deny", "rules": []object{rule("r", "gcra", 1, 1)}})
	for _, seed := range []string{
		`{"headers":{"x-api-key":"k"}}`, `{"headers":{"X-Api-Key":"k"},"routeKey":"$default"}`,
		`{"headers":null,"stageVariables":null}`,
		`{"headers":{"x-api-key":"\u0000"},"pathParameters":{"x-api-key":"k"},
		"requestContext":{"authorizer":{"iam":null}}}`,
	} {
		f.Add(seed)
	}
	fix.authorizer = authorizerConfig{Policy: "closed", Key: "$request.header.x-api-key"}
	f.Fuzz(func(t *testing.T, event string) {
		var e authorizerEvent
		if json.Unmarshal([]byte(event), &e) != nil {
			return
		}
		e.StageVariables = nil // the operator sets them, not the caller
		if answer := fix.authorize(t.Context(), e); answer.IsAuthorized {
			t.Fatalf("%q was authorized: %+v", event, answer)
		}
	})
}

// FuzzPolicy requires that every policy that the API stores is valid, and that no check under it,
// with any key and any cost, causes a 5xx status.
func FuzzPolicy(f *testing.F) {
	fix := start(f)
	for _, seed := range []string{
		`{"rules":[{"name":"r","algorithm":"gcra","limit":1,"window_ms":1}]}`,
		`{"name":"p","mode":"allow","local_share":1e-300,
		"rules":[{"name":"r","algorithm":"sliding_window_counter","limit":1000000000,"window_ms":31622400000}]}`,
		`{"rules":[{"name":"a","algorithm":"sliding_window","limit":100000,"window_ms":31622400000},
		{"name":"b","algorithm":"fixed_window","limit":3,"window_ms":7}],"overrides":[{"key":"*","mode":"shadow"}]}`,
		`{"rules":[{"name":"r","algorithm":"token_bucket","limit":999999999,"window_ms":86400000,"burst":1000000000}]}`,
	} {
		f.Add(seed, "k", int64(1))
	}
	f.Fuzz(func(t *testing.T, body, key string, cost int64) {
		put := fix.Send(t, http.MethodPut, "/v1/policies/p", body)
		if put.Status >= http.StatusInternalServerError {
			t.Fatalf("%q: %s", body, put.Text)
		}
		if put.Status >= http.StatusBadRequest {
			return
		}

		var stored storedBody
		if err := json.Unmarshal([]byte(put.Text), &stored); err != nil {
			t.Fatal(err)
		}
		if again, err := stored.Normalize(); err != nil || again.Mode != *stored.Mode {
			t.Fatalf("%s was stored, but is invalid: %v", put.Text, err)
		}
		a := fix.Send(t, http.MethodPost, "/v1/limits/p/check", object{"key": key, "cost": cost})
		if a.Status >= http.StatusInternalServerError {
			t.Fatalf("%s, key %q, cost %d: %s", put.Text, key, cost, a.Text)
		}
	})
}
