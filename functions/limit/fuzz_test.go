package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// Whatever a caller sends, nothing panics and nothing is a 5xx.
func FuzzNoRequestBreaksTheFunction(f *testing.F) {
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
			`{"mode":"shadow","local_share":0.5,"rules":[{"name":"r","algorithm":"token_bucket","limit":1,"window_ms":1,"burst":2}],"overrides":[{"key":"a*","mode":"deny"}]}`},
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

// No event makes the authorizer panic, and none gets past a policy that denies all.
func FuzzNoEventGetsPastTheAuthorizer(f *testing.F) {
	fix := start(f)
	fix.Want(f, http.StatusCreated, http.MethodPut, "/v1/policies/closed",
		object{"mode": "deny", "rules": []object{rule("r", "gcra", 1, 1)}})
	for _, seed := range []string{
		`{"headers":{"x-api-key":"k"}}`, `{"headers":{"X-Api-Key":"k"},"routeKey":"$default"}`,
		`{"headers":null,"stageVariables":null}`,
		`{"headers":{"x-api-key":"\u0000"},"pathParameters":{"x-api-key":"k"},"requestContext":{"authorizer":{"iam":null}}}`,
	} {
		f.Add(seed)
	}
	fix.authorizer = authorizerConfig{Policy: "closed", Key: "$request.header.x-api-key"}
	f.Fuzz(func(t *testing.T, event string) {
		var e events.APIGatewayV2CustomAuthorizerV2Request
		if json.Unmarshal([]byte(event), &e) != nil {
			return
		}
		e.StageVariables = nil // they are the operator's
		if verdict := fix.authorize(t.Context(), e); verdict.IsAuthorized {
			t.Fatalf("%q got past: %+v", event, verdict)
		}
	})
}

// A policy that is taken is valid, stays what it is, and finds rules for any key.
func FuzzNoPolicyBreaksTheLimiter(f *testing.F) {
	fix := start(f)
	for _, seed := range []string{
		`{"rules":[{"name":"r","algorithm":"gcra","limit":1,"window_ms":1}]}`,
		`{"name":"p","mode":"allow","local_share":1e-300,"rules":[{"name":"r","algorithm":"sliding_window_counter","limit":1000000000,"window_ms":31622400000}]}`,
		`{"rules":[{"name":"a","algorithm":"sliding_window","limit":100000,"window_ms":31622400000},{"name":"b","algorithm":"fixed_window","limit":3,"window_ms":7}],"overrides":[{"key":"*","mode":"shadow"}]}`,
		`{"rules":[{"name":"r","algorithm":"token_bucket","limit":999999999,"window_ms":86400000,"burst":1000000000}]}`,
	} {
		f.Add(seed, "k", int64(1))
	}
	f.Fuzz(func(t *testing.T, body, key string, cost int64) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v1/policies/p", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		put := fix.Serve(t, r)
		if put.Status >= http.StatusInternalServerError {
			t.Fatalf("%q: %s", body, put.Text)
		}
		if put.Status >= http.StatusBadRequest {
			return
		}
		text, err := json.Marshal(object{"key": key, "cost": cost})
		if err != nil {
			return
		}
		var stored storedBody
		if err := json.Unmarshal([]byte(put.Text), &stored); err != nil {
			t.Fatal(err)
		}
		if again, err := stored.Normalize(); err != nil || again.Mode != *stored.Mode {
			t.Fatalf("%s was stored, and is not valid: %v", put.Text, err)
		}
		check := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/limits/p/check",
			strings.NewReader(string(text)))
		check.Header.Set("Content-Type", "application/json")
		if a := fix.Serve(t, check); a.Status >= http.StatusInternalServerError {
			t.Fatalf("%s, key %q, cost %d: %s", put.Text, key, cost, a.Text)
		}
	})
}
