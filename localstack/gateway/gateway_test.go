package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/shared/routes"
)

// These tests check that the gateway behaves like an HTTP API of API Gateway with payload format
// 2.0.

// function is a fake Lambda function that records its events and returns a fixed answer.
type function struct {
	invoked []events.APIGatewayV2HTTPRequest
	raw     []byte // the last event, in JSON
	answer  string
	err     error
	wait    bool
}

func (f *function) Invoke(ctx context.Context, _ string, payload []byte) ([]byte, error) {
	if f.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	f.invoked, f.raw = append(f.invoked, e), payload
	return []byte(f.answer), f.err
}

const ok = `{"statusCode":200}`

// serve serves a gateway over HTTP and returns its URL.
func serve(t *testing.T, f *function, change ...func(*gateway.Config)) string {
	t.Helper()
	cfg := gateway.Config{Invoker: f, Routes: routes.All(), StageVariables: map[string]string{"color": "blue"}}
	for _, c := range change {
		c(&cfg)
	}
	server := httptest.NewServer(gateway.New(cfg))
	t.Cleanup(server.Close)
	return server.URL
}

// send sends a request and returns the answer and its body.
func send(t *testing.T, method, url string, body []byte, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w, string(text)
}

func TestEvent(t *testing.T) {
	t.Parallel()
	t.Run("has payload format 2.0", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: ok}
		url := serve(t, f)
		before := time.Now().UnixMilli()
		target := url + "/v1/queues/or%C3%A9ders/jobs/a%2Fb/ack?tag=1&tag=2&x=%20y"
		send(t, http.MethodPost, target, []byte(`{"attempt":1}`),
			"Content-Type", "application/json", "X-Trace", "one", "X-Trace", "two",
			"Cookie", "a=1; b=2", "Cookie", "c=3",
			"User-Agent", "curl/9", "X-Forwarded-For", "203.0.113.9")
		require.Len(t, f.invoked, 1)
		e := f.invoked[0]
		c := e.RequestContext

		require.Equal(t, "2.0", e.Version)
		require.Equal(t, "one,two", e.Headers["x-trace"], "names are in lower case, repeated headers joined by commas")
		require.Equal(t, []string{"a=1", "b=2", "c=3"}, e.Cookies, "cookies are in a separate list")
		require.NotContains(t, e.Headers, "cookie")
		require.Equal(t, "203.0.113.9, 127.0.0.1", e.Headers["x-forwarded-for"],
			"the gateway appends the caller's address to the header")
		require.Equal(t, "/v1/queues/or%C3%A9ders/jobs/a%2Fb/ack", e.RawPath)
		require.Equal(t, "tag=1&tag=2&x=%20y", e.RawQueryString)
		require.Equal(t, map[string]string{"tag": "1,2", "x": " y"}, e.QueryStringParameters)
		require.Equal(t, map[string]string{"queue": "oréders", "id": "a/b"}, e.PathParameters,
			"path parameters are decoded")
		require.Equal(t, map[string]string{"color": "blue"}, e.StageVariables)
		require.Equal(t, `{"attempt":1}`, e.Body)
		require.False(t, e.IsBase64Encoded)

		require.NotEmpty(t, c.AccountID)
		require.NotEmpty(t, c.APIID)
		require.Equal(t, strings.TrimPrefix(url, "http://"), c.DomainName)
		require.Equal(t, http.MethodPost, c.HTTP.Method)
		require.Equal(t, "/v1/queues/oréders/jobs/a/b/ack", c.HTTP.Path)
		require.Equal(t, "HTTP/1.1", c.HTTP.Protocol)
		require.Equal(t, "127.0.0.1", c.HTTP.SourceIP, "the source IP has no port")
		require.Equal(t, "curl/9", c.HTTP.UserAgent)
		require.NotEmpty(t, c.RequestID)
		require.Equal(t, "POST /v1/queues/{queue}/jobs/{id}/ack", c.RouteKey)
		require.Equal(t, c.RouteKey, e.RouteKey)
		require.Equal(t, "$default", c.Stage)
		require.InDelta(t, before, c.TimeEpoch, 5000)
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", c.Time)
		require.NoError(t, err)
		require.Equal(t, c.TimeEpoch/1000, at.Unix())
		require.Nil(t, c.Authorizer, "an unsigned request has no caller")
	})

	t.Run("omits the members that the request does not have", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: ok}
		send(t, http.MethodGet, serve(t, f)+"/v1/queues", nil, "Content-Type", "application/octet-stream")
		var shape map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(f.raw, &shape))
		for _, absent := range []string{"cookies", "body", "queryStringParameters", "pathParameters"} {
			require.NotContains(t, shape, absent)
		}
		require.JSONEq(t, `false`, string(shape["isBase64Encoded"]))
	})

	t.Run("encodes binary bodies in base64, in both directions", func(t *testing.T) {
		t.Parallel()
		binary := []byte{0, 255, 1, 254}
		f := &function{answer: `{"statusCode":200,"isBase64Encoded":true,"body":"` +
			base64.StdEncoding.EncodeToString(binary) + `"}`}
		_, text := send(t, http.MethodPost, serve(t, f)+"/v1/queues/orders/jobs", binary, "Content-Type",
			"application/octet-stream")
		require.True(t, f.invoked[0].IsBase64Encoded)
		require.Equal(t, base64.StdEncoding.EncodeToString(binary), f.invoked[0].Body)
		require.Equal(t, string(binary), text)
	})

	t.Run("contains the caller of a signed request", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: ok}
		send(t, http.MethodGet, serve(t, f)+"/v1/queues", nil,
			"Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/eu-central-1/execute-api/aws4_request, "+
				"SignedHeaders=host, Signature=00")
		require.NotNil(t, f.invoked[0].RequestContext.Authorizer)
		iam := f.invoked[0].RequestContext.Authorizer.IAM
		require.Equal(t, "AKIDEXAMPLE", iam.AccessKey)
		require.Equal(t, "arn:aws:iam::000000000000:user/AKIDEXAMPLE", iam.UserARN)
	})
}

func TestWriteAnswer(t *testing.T) {
	t.Parallel()
	internal := `{"message":"Internal Server Error"}`
	for name, tc := range map[string]struct {
		answer string
		status int
		body   string
		header http.Header
	}{
		"status, headers and body are kept": {
			`{"statusCode":201,"headers":{"x-a":"1","content-type":"application/json"},"body":"{}"}`, 201, "{}",
			http.Header{"X-A": {"1"}, "Content-Type": {"application/json"}},
		},
		"cookies become Set-Cookie": {`{"statusCode":200,"cookies":["a=1; Secure","b=2"]}`, 200, "",
			http.Header{"Set-Cookie": {"a=1; Secure", "b=2"}}},
		"a body without a type is plain text": {`{"statusCode":200,"body":"hi"}`, 200, "hi",
			http.Header{"Content-Type": {"text/plain; charset=utf-8"}}},
		"JSON without a status is a 200": {`{"hello":"world"}`, 200, `{"hello":"world"}`,
			http.Header{"Content-Type": {"application/json"}}},
		"an answer that is not JSON is an error": {`oops`, 500, internal, nil},
		"an invalid status is an error":          {`{"statusCode":9}`, 500, internal, nil},
		"a status that is a string is an error":  {`{"statusCode":"x"}`, 500, internal, nil},
		"invalid base64 is an error": {`{"statusCode":200,"isBase64Encoded":true,"body":"%"}`, 500, internal,
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, text := send(t, http.MethodGet, serve(t, &function{answer: tc.answer})+"/v1/queues", nil)
			require.Equal(t, tc.status, w.StatusCode)
			require.Equal(t, tc.body, text)
			for name, values := range tc.header {
				require.Equal(t, values, w.Header.Values(name))
			}
		})
	}
}

func TestServeHTTP(t *testing.T) {
	t.Parallel()
	t.Run("answers errors like API Gateway", func(t *testing.T) {
		t.Parallel()
		iam := func(c *gateway.Config) { c.RequireIAM = true }
		hurry := func(c *gateway.Config) { c.Timeout = 20 * time.Millisecond }
		for name, tc := range map[string]struct {
			f            *function
			change       []func(*gateway.Config)
			method, path string
			body         []byte
			status       int
			message      string
			invoked      bool
		}{
			"no route": {&function{answer: ok}, nil, "GET", "/v2/nothing", nil, 404, "Not Found",
				false},
			"no route for the method": {&function{answer: ok}, nil, "PUT", "/v1/queues", nil, 404, "Not Found",
				false},
			"an empty path parameter": {&function{answer: ok}, nil, "GET", "/v1/locks/", nil, 404, "Not Found",
				false},
			"an unsigned request with RequireIAM": {&function{answer: ok}, []func(*gateway.Config){iam}, "GET",
				"/v1/queues", nil, 403, "Forbidden", false},
			"a function that failed": {&function{err: &gateway.FunctionError{Payload: []byte("boom")}}, nil, "GET",
				"/v1/queues", nil, 500, "Internal Server Error", true},
			"an unreachable runtime": {&function{err: errors.New("no route to host")}, nil, "GET", "/v1/queues",
				nil, 500, "Internal Server Error", true},
			"a function that times out": {&function{wait: true}, []func(*gateway.Config){hurry}, "GET",
				"/v1/queues", nil, 503, "Service Unavailable", false},
			"a body over 10 MB": {&function{answer: ok}, nil, "POST", "/v1/queues/q/jobs",
				make([]byte, 10<<20+1), 413, "Request Entity Too Large", false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, text := send(t, tc.method, serve(t, tc.f, tc.change...)+tc.path, tc.body)
				require.Equal(t, tc.status, w.StatusCode)
				require.JSONEq(t, `{"message":"`+tc.message+`"}`, text)
				require.Equal(t, "application/json", w.Header.Get("Content-Type"))
				require.Equal(t, tc.invoked, len(tc.f.invoked) == 1)
			})
		}
		t.Run("accepts a body of exactly 10 MB", func(t *testing.T) {
			t.Parallel()
			w, _ := send(t, http.MethodPost, serve(t, &function{answer: ok})+"/v1/queues/q/jobs", make([]byte, 10<<20))
			require.Equal(t, http.StatusOK, w.StatusCode)
		})
		t.Run("has a timeout of 30 s by default", func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 30*time.Second, gateway.DefaultTimeout)
		})
	})

	t.Run("selects the most specific route", func(t *testing.T) {
		t.Parallel()
		all := []routes.Route{
			{Method: routes.Any, Path: routes.Default, Function: "f"},
			{Method: routes.Any, Path: "/v1/{proxy+}", Function: "f"},
			{Method: "POST", Path: "/v1/limits/{policy}", Function: "f"},
			{Method: routes.Any, Path: "/v1/limits/check", Function: "f"},
			{Method: "POST", Path: "/v1/limits/check", Function: "f"},
		}
		for path, want := range map[string]string{
			"POST /v1/limits/check":  "POST /v1/limits/check",
			"PUT /v1/limits/check":   "ANY /v1/limits/check",
			"POST /v1/limits/login":  "POST /v1/limits/{policy}",
			"GET /v1/limits/login":   "ANY /v1/{proxy+}",
			"GET /v1/limits/a/b/c":   "ANY /v1/{proxy+}",
			"GET /somewhere/else":    "$default",
			"POST /v1/limits/check/": "ANY /v1/{proxy+}",
		} {
			f := &function{answer: ok}
			url := serve(t, f, func(c *gateway.Config) { c.Routes = all })
			method, target, _ := strings.Cut(path, " ")
			send(t, method, url+target, nil)
			require.Equal(t, want, f.invoked[0].RouteKey, path)
		}
	})
}
