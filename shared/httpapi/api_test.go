package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/telemetry"
)

type bundle struct {
	api     *httpapi.API
	logs    *bytes.Buffer
	metrics *bytes.Buffer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{logs: &bytes.Buffer{}, metrics: &bytes.Buffer{}}
	b.api = httpapi.New(telemetry.NewLogger(b.logs, "info", "test"), telemetry.NewMetrics(b.metrics, "test"))
	return b
}

func (b *bundle) serve(method, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, target, http.NoBody)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	return w
}

func problem(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var doc map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.Equal(t, w.Header().Get("X-Request-Id"), doc["instance"])
	require.EqualValues(t, w.Code, doc["status"])
	require.NotEmpty(t, doc["type"])
	require.NotEmpty(t, doc["title"])
	return doc
}

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		status int
		code   string
		has    map[string]any
		header map[string]string
	}{
		"a held lock tells when to come back, with its extra members": {
			err: fault.New(fault.LockHeld, "the lock is held").After(1500*time.Millisecond+1).With("holder",
				"worker-7"),
			status: http.StatusConflict, code: "lock_held",
			has:    map[string]any{"retry_after_ms": 1501.0, "holder": "worker-7"},
			header: map[string]string{"Retry-After": "2"},
		},
		"an unavailable store always has Retry-After": {
			err:    fault.Unavailable("redis", errors.New("dial tcp 10.1.2.3:6379: refused")),
			status: http.StatusServiceUnavailable, code: "store_unavailable",
			header: map[string]string{"Retry-After": "1"},
		},
		"an ended request is deadline_exceeded": {
			err: context.DeadlineExceeded, status: http.StatusGatewayTimeout, code: "deadline_exceeded",
		},
		"any other error is internal and shows nothing of itself": {
			err: errors.New("pq: secret at 10.1.2.3"), status: http.StatusInternalServerError, code: "internal",
		},
		"a quota may bring its own problem type": {
			err:    fault.New(fault.QuotaExceeded, "over").With("type", "https://example.test/quota"),
			status: http.StatusTooManyRequests, code: "quota_exceeded",
			has: map[string]any{"type": "https://example.test/quota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.api.Handle("GET /x", func(http.ResponseWriter, *http.Request) error { return tc.err })
			w := b.serve(http.MethodGet, "/x")
			require.Equal(t, tc.status, w.Code)
			doc := problem(t, w)
			require.Equal(t, tc.code, doc["code"])
			for k, v := range tc.has {
				require.Equal(t, v, doc[k])
			}
			for k, v := range tc.header {
				require.Equal(t, v, w.Header().Get(k))
			}
			require.NotContains(t, w.Body.String(), "10.1.2.3", "nothing internal reaches a caller")
			require.Contains(t, b.logs.String(), tc.code, "the log names the outcome")
			require.Contains(t, b.metrics.String(), `"outcome":"`+tc.code+`"`)
		})
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok := func(w http.ResponseWriter, r *http.Request) error {
		return httpapi.Write(w, http.StatusOK, map[string]string{"name": r.PathValue("name")})
	}
	b.api.Handle("GET /v1/locks/{name}", ok)
	b.api.Handle("DELETE /v1/locks/{name}", ok)

	for name, tc := range map[string]struct {
		method, target string
		status         int
		allow          string
	}{
		"a known route answers":                     {http.MethodGet, "/v1/locks/a", 200, ""},
		"an unknown path is 404":                    {http.MethodGet, "/v2/locks/a", 404, ""},
		"a trailing slash is another path":          {http.MethodGet, "/v1/locks/a/", 404, ""},
		"a path that would be cleaned is 404":       {http.MethodGet, "/v1//locks/a", 404, ""},
		"a known path with another method is 405":   {http.MethodPost, "/v1/locks/a", 405, "DELETE, GET, HEAD"},
		"a method of nobody is 405 on a known path": {"BREW", "/v1/locks/a", 405, "DELETE, GET, HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := b.serve(tc.method, tc.target)
			require.Equal(t, tc.status, w.Code, w.Body.String())
			require.Equal(t, tc.allow, w.Header().Get("Allow"))
			require.NotEmpty(t, w.Header().Get("X-Request-Id"))
			if tc.status >= 400 {
				problem(t, w)
			}
		})
	}
}

func TestAPanicIsA500AndTheNextRequestIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.Handle("GET /panic", func(http.ResponseWriter, *http.Request) error { panic("boom at 10.1.2.3") })
	b.api.Handle("GET /fine", func(w http.ResponseWriter, _ *http.Request) error {
		return httpapi.Write(w, 200, "fine")
	})

	w := b.serve(http.MethodGet, "/panic")
	require.Equal(t, http.StatusInternalServerError, w.Code)
	doc := problem(t, w)
	require.NotContains(t, w.Body.String(), "boom")
	require.Contains(t, b.logs.String(), doc["instance"], "the request id finds the panic in the log")
	require.Contains(t, b.logs.String(), "boom")

	require.Equal(t, http.StatusOK, b.serve(http.MethodGet, "/fine").Code)
}

func TestLogsNameTheRouteAndNotThePath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api.Handle("GET /v1/locks/{name}", func(w http.ResponseWriter, _ *http.Request) error {
		return httpapi.Write(w, 200, nil)
	})
	b.serve(http.MethodGet, "/v1/locks/some-customer")
	require.Contains(t, b.logs.String(), "GET /v1/locks/{name}")
	require.NotContains(t, b.metrics.String(), "some-customer", "no user's key becomes a dimension")
	require.Contains(t, b.logs.String(), slog.LevelInfo.String())
}
