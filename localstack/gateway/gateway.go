// Package gateway implements the HTTP APIs of API Gateway with payload format 2.0, for the local
// stack. It follows
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/shared/routes"
)

// Invoker invokes a function and waits for its answer. If the function fails, the error is a
// *FunctionError.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// FunctionError is a failure of a function: an error that it returned, a crash, or a timeout.
type FunctionError struct{ Payload []byte }

// Error implements error.
func (e *FunctionError) Error() string { return "the function failed: " + string(e.Payload) }

// Config describes a stage of an HTTP API.
type Config struct {
	Invoker Invoker
	Routes  []routes.Route
	// RequireIAM makes the gateway answer 403 to requests without a signature.
	RequireIAM bool
	// Credentials maps access key IDs to secret keys. The gateway verifies signatures with them. If
	// Credentials is nil, the gateway accepts every signature.
	Credentials map[string]string
	// Authorizers maps a route key, such as "GET /v1/queues", to a REQUEST authorizer (payload
	// format 2.0, simple responses).
	Authorizers map[string]Authorizer
	// StageVariables are the stage variables, which the gateway copies to every event.
	StageVariables map[string]string
	// Timeout is the maximum duration of an invocation. Default [DefaultTimeout].
	Timeout time.Duration
}

// DefaultTimeout is API Gateway's maximum integration timeout.
const DefaultTimeout = 30 * time.Second

// maxBody is API Gateway's limit for a request body, in bytes: 10 MB.
const maxBody = 10 << 20

// Gateway is the [http.Handler] of a stage.
type Gateway struct {
	cfg    Config
	router router
}

// New returns a Gateway.
func New(cfg Config) *Gateway {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Gateway{cfg: cfg, router: newRouter(cfg.Routes)}
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, params, found := g.router.match(r)
	if !found {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		refuse(w, http.StatusBadRequest, "Bad Request")
		return
	}
	if len(body) > maxBody {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	e := newEvent(r, route, params, body, g.cfg.StageVariables)
	if !g.authenticate(w, r, body, &e) || !g.authorize(w, r, route, &e) {
		return
	}
	g.integrate(w, r, route, e)
}

// integrate invokes the function of the route and writes its answer.
func (g *Gateway) integrate(w http.ResponseWriter, r *http.Request, route routes.Route, e event) {
	ctx, cancel := context.WithTimeout(r.Context(), g.cfg.Timeout)
	defer cancel()
	answer, err := g.cfg.Invoker.Invoke(ctx, string(route.Function), e.marshal())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	case err != nil:
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		if !writeAnswer(w, answer) {
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
		}
	}
}

// refuse writes an error response in the format of API Gateway.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"message":"`+message+`"}`)
}
