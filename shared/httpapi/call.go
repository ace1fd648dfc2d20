package httpapi

import (
	"context"
	"crypto/rand"
	"net/http"

	"github.com/sluicehq/sluice/shared/fault"
)

// call holds the metadata and the outcome of one request.
type call struct {
	requestID string
	caller    string
	err       *fault.Error
}

type callKey struct{}

// WithGateway returns a context with the request ID that API Gateway assigned and the IAM ARN of
// the caller, which is empty if the request is not signed.
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

// RequestID returns the ID of the request. The response has it in the header X-Request-Id.
func RequestID(ctx context.Context) string { return callOf(ctx).requestID }

// Caller returns the IAM ARN of the caller, or "" if the request is not signed.
func Caller(ctx context.Context) string { return callOf(ctx).caller }
