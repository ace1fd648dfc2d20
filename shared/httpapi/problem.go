package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
)

const problemBase = "https://sluicehq.github.io/problems/"

// statusOf returns the HTTP status of a code.
func statusOf(code fault.Code) int {
	switch code {
	case fault.InvalidRequest:
		return http.StatusBadRequest
	case fault.NotFound, fault.JobNotFound, fault.QueueNotFound, fault.PolicyNotFound:
		return http.StatusNotFound
	case fault.MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case fault.LockHeld, fault.LockNotHeld, fault.JobConflict:
		return http.StatusConflict
	case fault.PreconditionFailed:
		return http.StatusPreconditionFailed
	case fault.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.UnsupportedMediaType:
		return http.StatusUnsupportedMediaType
	case fault.QuotaExceeded:
		return http.StatusTooManyRequests
	case fault.StoreUnavailable:
		return http.StatusServiceUnavailable
	case fault.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// titleOf returns the title of problem documents with a code.
func titleOf(code fault.Code) string { //nolint:cyclop // one line for each code of the contract
	switch code {
	case fault.InvalidRequest:
		return "Invalid request"
	case fault.NotFound:
		return "Route not found"
	case fault.JobNotFound:
		return "Job not found"
	case fault.QueueNotFound:
		return "Queue not found"
	case fault.PolicyNotFound:
		return "Policy not found"
	case fault.MethodNotAllowed:
		return "Method not allowed"
	case fault.LockHeld:
		return "Lock held"
	case fault.LockNotHeld:
		return "Lock not held"
	case fault.JobConflict:
		return "Job state conflict"
	case fault.PreconditionFailed:
		return "Precondition failed"
	case fault.PayloadTooLarge:
		return "Payload too large"
	case fault.UnsupportedMediaType:
		return "Unsupported media type"
	case fault.QuotaExceeded:
		return "Quota exceeded"
	case fault.StoreUnavailable:
		return "Store unavailable"
	case fault.DeadlineExceeded:
		return "Deadline exceeded"
	default:
		return "Internal error"
	}
}

// internalDetail is the detail of every internal error. Only the log contains the cause.
const internalDetail = "unexpected error; report it with the request ID"

// asFault converts any error to an error that a caller may see. An error that is not a
// [fault.Error] becomes deadline_exceeded if the request's context has ended, and internal
// otherwise.
func asFault(err error) *fault.Error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.New(fault.DeadlineExceeded,
			"the request did not finish before its deadline; it is safe to send it again").Because(err)
	default:
		return fault.New(fault.Internal, internalDetail).Because(err)
	}
}

// Problem returns f as an RFC 9457 problem document.
func Problem(f *fault.Error, requestID string) map[string]any {
	doc := make(map[string]any, 8+len(f.Extra))
	maps.Copy(doc, f.Extra)
	if f.RetryAfter > 0 {
		doc["retry_after_ms"] = instant.CeilMilliseconds(f.RetryAfter)
	}
	if _, ok := doc["type"]; !ok {
		doc["type"] = problemBase + string(f.Code)
	}
	doc["title"] = titleOf(f.Code)
	doc["status"] = statusOf(f.Code)
	doc["detail"] = f.Detail
	doc["instance"] = requestID
	doc["code"] = f.Code
	if len(f.Fields) > 0 {
		doc["errors"] = f.Fields
	}
	return doc
}

// ProblemOf returns the problem document of any error. The document of an internal error does not
// disclose its cause.
func ProblemOf(err error, requestID string) map[string]any { return Problem(asFault(err), requestID) }

func writeProblem(w http.ResponseWriter, f *fault.Error, requestID string) {
	text, err := json.Marshal(Problem(f, requestID))
	if err != nil {
		text = []byte(`{"code":"internal","status":500}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(instant.CeilSeconds(f.RetryAfter), 10))
	}
	w.WriteHeader(statusOf(f.Code))
	_, _ = w.Write(text)
}
