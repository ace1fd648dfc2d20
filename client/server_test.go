package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// server is an HTTP server that records its requests. The function passed to serve answers the
// requests. Its parameter n is the number of the request: 0, 1, 2, …
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
}

type received struct {
	method, path string
	header       http.Header
	body         map[string]any
}

func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got := received{method: r.Method, path: r.URL.RequestURI(), header: r.Header}
		_ = json.Unmarshal(text, &got.body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, got)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.requests...)
}

func (s *server) client(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	cfg.Endpoint, cfg.Auth = s.URL, client.AuthNone
	c, err := client.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func say(w http.ResponseWriter, status int, text string) {
	mediaType := "application/json"
	if status >= 400 && strings.Contains(text, `"code"`) {
		mediaType = "application/problem+json"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Request-Id", "req-7")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }
