package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/lock"
)

// FuzzHandler requires that no request causes a panic or a 5xx status, that every answer is JSON,
// and that every granted lease can be inspected and released.
func FuzzHandler(f *testing.F) {
	fix := start(f)
	fix.Want(f, 200, "POST", report+"/acquire", object{"token": goodKey, "ttl_ms": 3_600_000})
	fix.Want(f, 200, "POST", pool+"/acquire", object{"token": goodKey, "ttl_ms": 3_600_000, "capacity": 2})
	for _, seed := range [][3]string{
		{"POST", "/v1/locks/a/acquire",
			`{"ttl_ms":100,"wait_ms":5,"owner":"ann","mode":"shared","metadata":{"a":[1,{"b":null}]}}`},
		{"POST", "/v1/locks/a/acquire",
			`{"token":"0123456789abcdef","metadata":{"\u0000":"\ud83d\ude00"},"consistency":"redis"}`},
		{"POST", "/v1/locks/a/acquire", `{"ttl_ms":9223372036854775807,"wait_ms":-9223372036854775808}`},
		{"POST", "/v1/locks/a/acquire", `{"ttl_ms":1e99,"owner":"\ud800"}`},
		{"POST", "/v1/locks/report/acquire", `{"token":"a-token-of-16-ch","mode":"shared"}`},
		{"POST", "/v1/locks/report/renew", `{"token":"a-token-of-16-ch","ttl_ms":3600000}`},
		{"POST", "/v1/locks/report/release", `{"token":"a-token-of-16-cx"}`},
		{"POST", "/v1/semaphores/pool/acquire", `{"capacity":1}`},
		{"POST", "/v1/semaphores/s/acquire", `{"capacity":10000,"metadata":{}}`},
		{"POST", "/v1/semaphores/pool/renew", `{"token":"a-token-of-16-ch"}`},
		{"POST", "/v1/semaphores/pool/release", `{"token":"%s-%d-%c-%5-%%%%%%"}`},
		{"GET", "/v1/locks/report?consistency=redis", ""},
		{"GET", "/v1/semaphores/pool?consistency=%ff&x", ""},
		{"DELETE", "/v1/locks/a?consistency=strong", ""},
		{"PATCH", "/v1//locks/../%2e/acquire", `{`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	handle := httpapi.Lambda(fix.Handler)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", Body: body,
			Headers: map[string]string{"content-type": "application/json"}}
		e.RawPath, e.RawQueryString, _ = strings.Cut(target, "?")
		e.RequestContext.HTTP.Method = method
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // an acquire may wait for 20 s
		defer cancel()
		response, err := handle(ctx, e)
		if err != nil {
			t.Fatalf("%s %q: %v", method, target, err)
		}
		if response.StatusCode < 200 || response.StatusCode >= 500 {
			t.Fatalf("%s %q %q: %+v", method, target, body, response)
		}
		if !json.Valid([]byte(response.Body)) {
			t.Fatalf("%s %q: the answer is not JSON: %s", method, target, response.Body)
		}
		if base, ok := strings.CutSuffix(e.RawPath, "/acquire"); ok && response.StatusCode == http.StatusOK {
			fix.requireReleasable(t, base, response.Body)
		}
	})
}

// requireReleasable requires that a granted lease can be inspected and released.
func (f *fixture) requireReleasable(t *testing.T, base, answer string) {
	t.Helper()
	var lease struct {
		Token string `json:"token"`
		Fence int64  `json:"fence"`
		TTL   int64  `json:"ttl_ms"`
	}
	if err := json.Unmarshal([]byte(answer), &lease); err != nil || lease.Fence <= 0 || lease.Fence >= 1<<53 {
		t.Fatalf("%s: %v", answer, err)
	}
	if a := f.Send(t, "GET", base, nil); a.Status != http.StatusOK || strings.Contains(a.Text, lease.Token) {
		t.Fatalf("%s: %s", answer, a.Text)
	}
	a := f.Send(t, "POST", base+"/release", object{"token": lease.Token})
	// A short lease may have ended.
	if a.Status != http.StatusOK && (lease.TTL > 5000 || a.Body["code"] != "lock_not_held") {
		t.Fatalf("%s cannot be released: %s", answer, a.Text)
	}
}

// FuzzAcquireRequest requires that every body is either refused as invalid or converted to a
// request within the ranges of the API.
func FuzzAcquireRequest(f *testing.F) {
	for _, body := range []string{
		``, ` `, `{}`, `null`, `[]`,
		`{"ttl_ms":100,"wait_ms":20000,"token":"0123456789abcdef","owner":"ann","metadata":{"a":1}}`,
		`{"consistency":"strong"}`,
		`{"ttl_ms":0}`, `{"ttl_ms":-0}`, `{"ttl_ms":1e3}`, `{"ttl_ms":18446744073720}`, `{"capacity":1}`,
		`{"mode":"shared","metadata":null}`,
		`{"metadata":{"a":{"a":1,"a":2}}}`, `{"metadata":{ "a" : "\u2028<>&" }}`, `{"owner":"\u007f"}`,
		`{"token":null}`, `{"Token":"x"}`, "{\"owner\":\"\xff\"}",
	} {
		f.Add(body, "report", true)
		f.Add(body, "", false)
	}
	f.Fuzz(func(t *testing.T, body, name string, semaphore bool) {
		kind := lock.Lock
		if semaphore {
			kind = lock.Semaphore
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.SetPathValue("name", name)
		req, _, err := acquireRequest(kind, r)
		if err == nil {
			req, err = req.Normalize()
		}
		if err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Code != fault.InvalidRequest &&
				refusal.Code != fault.PayloadTooLarge {
				t.Fatalf("%q: %v", body, err)
			}
			if refusal.Code == fault.InvalidRequest && len(refusal.Fields) == 0 {
				t.Fatalf("%q: the error names no field", body)
			}
			return
		}
		valid := req.TTL >= 100*time.Millisecond && req.TTL <= time.Hour &&
			req.Wait >= 0 && req.Wait <= 20*time.Second &&
			len(req.Token) >= 16 && len(req.Token) <= 128 && len(req.Owner) <= 256 && utf8.ValidString(req.Owner) &&
			len(req.Metadata) <= 1024 && fault.ValidName(req.Name)
		// The store keeps these fields in one record, separated by line breaks.
		if !valid || strings.ContainsAny(req.Token, " \n\x00") || strings.ContainsAny(req.Owner, "\n\x00") {
			t.Fatalf("%q: %+v", body, req)
		}
		if req.Metadata != nil && (!json.Valid(req.Metadata) || req.Metadata[0] != '{' ||
			strings.Contains(string(req.Metadata), "\n")) {
			t.Fatalf("%q: metadata %q", body, req.Metadata)
		}
		if semaphore && (req.Capacity < 1 || req.Capacity > 10_000 || req.Mode != lock.Shared) || !semaphore &&
			req.Mode != lock.Exclusive && req.Mode != lock.Shared {
			t.Fatalf("%q: %+v", body, req)
		}
	})
}
