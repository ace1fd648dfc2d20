package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// BenchmarkServeHTTP measures a request with a body, its log line and its metrics.
func BenchmarkServeHTTP(b *testing.B) {
	for name, handler := range map[string]httpapi.HandlerFunc{
		"ok": func(w http.ResponseWriter, r *http.Request) error {
			var into request
			if err := httpapi.Decode(r, &into); err != nil {
				return err
			}
			return httpapi.Write(w, http.StatusOK, into)
		},
		"problem": func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.LockHeld, "the lock is held").With("holder", "worker-7")
		},
	} {
		b.Run(name, func(b *testing.B) {
			log := telemetry.NewLogger(io.Discard, "info", "test")
			api := httpapi.New(log, telemetry.NewMetrics(io.Discard, "test"))
			api.Handle("POST /v1/locks/{name}/acquire", handler)
			const body = `{"ttl_ms": 30000, "token": "0123456789abcdef", "rules": [{"name": "r", "limit": 1}]}`

			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/v1/locks/report/acquire",
					strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				api.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
