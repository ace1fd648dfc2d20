// Package apitest calls an HTTP API in tests. It checks that every answer has a request ID, a JSON
// body and, if the call failed, an RFC 9457 problem document.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Object is a JSON object.
type Object = map[string]any

// API is an HTTP API under test. Fixtures embed it.
type API struct {
	// Handler serves the requests.
	Handler http.Handler
	// Log is the API's log. It is printed when an answer has the wrong status. Optional.
	Log *bytes.Buffer
}

// NewRequest makes a request. A body of nil means no body, a string is sent unchanged, and any
// other value is sent as JSON. A request with a body has the Content-Type application/json by
// default. headers alternates names and values.
func NewRequest(ctx context.Context, t testing.TB, method, target string, body any, headers ...string) *http.Request {
	t.Helper()
	content, isText := body.(string)
	if body != nil && !isText {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		content = string(text)
	}
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(content))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	require.Zero(t, len(headers)%2, "headers must alternate names and values: %v", headers)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Serve serves one request and reads the answer with [Read].
func (a *API) Serve(t testing.TB, r *http.Request) Reply {
	t.Helper()
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	return Read(t, w)
}

// Send serves the request that [NewRequest] makes.
func (a *API) Send(t testing.TB, method, target string, body any, headers ...string) Reply {
	t.Helper()
	return a.Serve(t, NewRequest(t.Context(), t, method, target, body, headers...))
}

// SendAsync serves a request in a new goroutine and returns a channel that receives the answer.
// Pass the answer to [Read].
func (a *API) SendAsync(ctx context.Context, t testing.TB, method, target string,
	body any) <-chan *httptest.ResponseRecorder {
	t.Helper()
	r := NewRequest(ctx, t, method, target, body)
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		answered <- w
	}()
	return answered
}

// Want sends a request and requires the status of the answer.
func (a *API) Want(t testing.TB, status int, method, target string, body any, headers ...string) Reply {
	t.Helper()
	reply := a.Send(t, method, target, body, headers...)
	require.Equal(t, status, reply.Status, "%s %s: %s\n%s", method, target, reply.Text, a.Log)
	return reply
}

// WantProblem sends a request and requires a problem document with this status and code.
func (a *API) WantProblem(t testing.TB, status int, code, method, target string, body any) Reply {
	t.Helper()
	reply := a.Want(t, status, method, target, body)
	require.Equal(t, code, reply.Body["code"], reply.Text)
	return reply
}
