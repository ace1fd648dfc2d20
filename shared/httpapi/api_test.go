package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// bundle is an API whose log and metrics are recorded.
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

// problem returns the problem document of an answer.
func problem(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	return apitest.Read(t, w).Body
}

func TestAPI(t *testing.T) {
	t.Parallel()
	t.Run("answers an error with a problem document", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			err    error
			status int
			code   string
			has    map[string]any
			header map[string]string
		}{
			"a held lock has the retry time and extra members": {
				err: fault.New(fault.LockHeld, "the lock is held").After(1500*time.Millisecond+1).With("holder",
					"worker-7"),
				status: http.StatusConflict, code: "lock_held",
				has:    map[string]any{"retry_after_ms": 1501.0, "holder": "worker-7"},
				header: map[string]string{"Retry-After": "2"},
			},
			"an unavailable store has Retry-After": {
				err:    fault.Unavailable("redis", errors.New("dial tcp 10.1.2.3:6379: refused")),
				status: http.StatusServiceUnavailable, code: "store_unavailable",
				header: map[string]string{"Retry-After": "1"},
			},
			"a request past its deadline is deadline_exceeded": {
				err: context.DeadlineExceeded, status: http.StatusGatewayTimeout, code: "deadline_exceeded",
			},
			"any other error is internal and hides its text": {
				err: errors.New("pq: secret at 10.1.2.3"), status: http.StatusInternalServerError, code: "internal",
			},
			"a quota may have its own problem type": {
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
				require.NotContains(t, w.Body.String(), "10.1.2.3", "a caller never sees internals")
				require.Contains(t, b.logs.String(), tc.code, "the log names the outcome")
				require.Contains(t, b.metrics.String(), `"outcome":"`+tc.code+`"`)
			})
		}
	})

	t.Run("answers 404 and 405 for unknown routes and methods", func(t *testing.T) {
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
			"a known route is 200":                {http.MethodGet, "/v1/locks/a", 200, ""},
			"an unknown path is 404":              {http.MethodGet, "/v2/locks/a", 404, ""},
			"a trailing slash is 404":             {http.MethodGet, "/v1/locks/a/", 404, ""},
			"a path that would be cleaned is 404": {http.MethodGet, "/v1//locks/a", 404, ""},
			"an unsupported method is 405":        {http.MethodPost, "/v1/locks/a", 405, "DELETE, GET, HEAD"},
			"an invented method is 405":           {"BREW", "/v1/locks/a", 405, "DELETE, GET, HEAD"},
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
	})

	t.Run("answers 500 after a panic and serves the next request", func(t *testing.T) {
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
		require.Contains(t, b.logs.String(), doc["instance"], "the log of the panic has the request ID")
		require.Contains(t, b.logs.String(), "boom")

		require.Equal(t, http.StatusOK, b.serve(http.MethodGet, "/fine").Code)
	})

	t.Run("logs the route, not the path", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.api.Handle("GET /v1/locks/{name}", func(w http.ResponseWriter, _ *http.Request) error {
			return httpapi.Write(w, 200, nil)
		})
		b.serve(http.MethodGet, "/v1/locks/some-customer")
		require.Contains(t, b.logs.String(), "GET /v1/locks/{name}")
		require.NotContains(t, b.metrics.String(), "some-customer", "a name that a caller chose is never a dimension")
		require.Contains(t, b.logs.String(), slog.LevelInfo.String())
	})
}
