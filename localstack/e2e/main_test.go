// Package e2e calls the complete system through its API and validates every answer against
// docs/openapi.yaml.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/stack"
)

// system is the running stack. api finds the description of a request in docs/openapi.yaml.
var (
	system *stack.Stack
	api    routers.Router
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi.yaml")
	if err != nil {
		return 1, err
	}
	doc.Servers = nil
	if api, err = gorillamux.NewRouter(doc); err != nil {
		return 1, err
	}
	log, err := os.CreateTemp("", "sluice-e2e-*.log")
	if err != nil {
		return 1, err
	}
	defer func() {
		_ = log.Close()
		if code == 0 {
			_ = os.Remove(log.Name())
		} else {
			fmt.Fprintln(os.Stderr, "the functions' log is", log.Name())
		}
	}()
	system, err = stack.Start(context.Background(), stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", LockNodes: 3, Log: log,
		Queues: []string{"orders", "emails", "pay.fifo"},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if closed := system.Close(); err == nil {
			err = closed
		}
	}()
	return m.Run(), nil
}

// answer is a response whose body has been read.
type answer struct {
	status int
	header http.Header
	text   []byte
	body   map[string]any
}

type object = map[string]any

// call sends a request and validates the answer against docs/openapi.yaml. If the body is a string,
// call sends it unchanged. If it is nil, call sends no body. It sends any other value as JSON.
func call(t *testing.T, method, path string, body any, headers ...string) answer {
	t.Helper()
	var content []byte
	switch b := body.(type) {
	case nil:
	case string:
		content = []byte(b)
	default:
		var err error
		content, err = json.Marshal(b)
		require.NoError(t, err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, system.APIURL+path, bytes.NewReader(content))
	require.NoError(t, err)
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	a.text, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	if len(a.text) > 0 {
		require.NoError(t, json.Unmarshal(a.text, &a.body), "%s %s: %s", method, path, a.text)
	}
	require.NotEmpty(t, a.header.Get("X-Request-Id"), "every answer has a request ID")
	validate(t, r, a)
	return a
}

// validate checks an answer against docs/openapi.yaml. The answer to an unknown route must be a
// problem document (RFC 9457).
func validate(t *testing.T, r *http.Request, a answer) {
	t.Helper()
	route, params, err := api.FindRoute(r)
	if err != nil {
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), "%s", a.text)
		return
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	require.NoError(t, err, "%s %s answered %d: %s", r.Method, r.URL, a.status, a.text)
}

// want sends a request and requires the given status.
func want(t *testing.T, status int, method, path string, body any, headers ...string) answer {
	t.Helper()
	a := call(t, method, path, body, headers...)
	require.Equal(t, status, a.status, "%s %s: %s", method, path, a.text)
	return a
}

func (a answer) number(field string) float64 { n, _ := a.body[field].(float64); return n }
func (a answer) string(field string) string  { s, _ := a.body[field].(string); return s }

func (a answer) instant(t *testing.T, field string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000Z", a.string(field))
	require.NoError(t, err, "a time must be RFC 3339 in UTC with milliseconds")
	return at
}
