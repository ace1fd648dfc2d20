// Package httpapi serves the HTTP API of a function: routing, strict decoding, RFC 9457 problem
// documents, request IDs, recovery from panics, one log line per request, and the adapter for API
// Gateway's payload format 2.0.
package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// HandlerFunc answers a request. If it returns an error, the API answers with a problem document. A
// handler must not return an error after it has written to w.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// API is an [http.Handler] for a set of routes.
type API struct {
	mux     *http.ServeMux
	log     *slog.Logger
	metrics *telemetry.Metrics
}

// New returns an API without routes.
func New(log *slog.Logger, metrics *telemetry.Metrics) *API {
	return &API{mux: http.NewServeMux(), log: log, metrics: metrics}
}

// Handle adds a route. The pattern has the syntax of [http.ServeMux] and includes the method, for
// example "POST /v1/locks/{name}/acquire".
func (a *API) Handle(pattern string, h HandlerFunc) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	call := callFrom(r)
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, call))
	w.Header().Set("X-Request-Id", call.requestID)
	rec := &recorder{ResponseWriter: w}
	handler, pattern := a.mux.Handler(r)
	defer func() {
		if p := recover(); p != nil {
			call.err = fault.New(fault.Internal, internalDetail).Because(fmt.Errorf("panic: %v", p))
			a.log.Error("panic", "request_id", call.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if rec.status == 0 {
				writeProblem(rec, call.err, call.requestID)
			}
		}
		a.observe(r, call, pattern, rec.status, time.Since(started))
	}()
	if pattern == "" || path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect to the clean path
		a.unrouted(rec, r, handler)
		return
	}
	a.mux.ServeHTTP(rec, r) // not handler.ServeHTTP: the mux sets the path values
}

// unrouted answers a request that no pattern matches: with 405 and the header Allow if the path
// supports other methods, and with 404 otherwise.
func (a *API) unrouted(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	probe := &discard{header: make(http.Header)}
	handler.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		w.Header().Set("Allow", allow)
		a.fail(w, r, fault.New(fault.MethodNotAllowed, "method %s is not allowed; use %s", r.Method, allow))
		return
	}
	a.fail(w, r, fault.New(fault.NotFound, "no route for %s %s", r.Method, r.URL.Path))
}

func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	call := callOf(r.Context())
	call.err = asFault(err)
	writeProblem(w, call.err, call.requestID)
}

func (a *API) observe(r *http.Request, call *call, pattern string, status int, took time.Duration) {
	outcome := "ok"
	attrs := []any{
		"request_id", call.requestID, "route", pattern, "status", status,
		"took_ms", instant.FloatMilliseconds(took), "caller", call.caller,
	}
	level := slog.LevelInfo
	if call.err != nil {
		outcome = string(call.err.Code)
		attrs = append(attrs, "code", outcome)
		if call.err.Cause != nil {
			attrs = append(attrs, "cause", call.err.Cause.Error())
		}
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
	}
	a.log.Log(r.Context(), level, "request", attrs...)
	a.metrics.Emit(map[string]string{"outcome": outcome},
		telemetry.One("requests", telemetry.Count, 1),
		telemetry.Span("latency", took))
}

// recorder records the status that was written.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// discard is a response writer that records the status and the headers of the mux's own answer, and
// drops its body.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }
