package httpapi

import (
	"context"
	"crypto/rand"
	"net/http"

	"github.com/sluicehq/sluice/shared/fault"
)

// call is what is known of one request beside its content.
type call struct {
	requestID string
	caller    string
	err       *fault.Error
}

type callKey struct{}

// WithGateway returns a context that carries what API Gateway knows of a request: its id, and the
// IAM ARN of its caller ("" when unsigned).
func WithGateway(ctx context.Context, requestID, caller string) context.Context {
	return context.WithValue(ctx, callKey{}, &call{requestID: requestID, caller: caller})
}

func callFrom(r *http.Request) *call {
	if c, ok := r.Context().Value(callKey{}).(*call); ok && c.requestID != "" {
		return c
	}
	return &call{requestID: rand.Text()}
}

func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// RequestID is the id that the response carries in X-Request-Id.
func RequestID(ctx context.Context) string { return callOf(ctx).requestID }

// Caller is the IAM ARN of the caller, or "" when the request is not signed.
func Caller(ctx context.Context) string { return callOf(ctx).caller }
