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

// statusOf maps every code of the contract to its HTTP status, in this one place.
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

func titleOf(code fault.Code) string { //nolint:cyclop // one line for each code of the contract
	switch code {
	case fault.InvalidRequest:
		return "The request is not valid"
	case fault.NotFound:
		return "There is nothing at this path"
	case fault.JobNotFound:
		return "There is no such job"
	case fault.QueueNotFound:
		return "There is no such queue"
	case fault.PolicyNotFound:
		return "There is no such policy"
	case fault.MethodNotAllowed:
		return "This path does not take that method"
	case fault.LockHeld:
		return "The lock is held"
	case fault.LockNotHeld:
		return "The token does not hold the lock"
	case fault.JobConflict:
		return "The job has left the state that the call needs"
	case fault.PreconditionFailed:
		return "The policy has changed"
	case fault.PayloadTooLarge:
		return "The payload is too large"
	case fault.UnsupportedMediaType:
		return "The body must be JSON"
	case fault.QuotaExceeded:
		return "The quota is exceeded"
	case fault.StoreUnavailable:
		return "A store cannot be reached"
	case fault.DeadlineExceeded:
		return "The time for this request ran out"
	default:
		return "Something broke"
	}
}

// asFault turns any error into one that a caller may see. What is not a [fault.Error] is a defect,
// unless the request's time ran out.
func asFault(err error) *fault.Error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.New(fault.DeadlineExceeded,
			"the request did not finish within its time; it is safe to send it again").Because(err)
	default:
		return fault.New(fault.Internal, "an unexpected error; the request id finds it in the log").Because(err)
	}
}

// Problem renders f as an RFC 9457 problem document with its status, without writing it: a batch
// puts such documents in its results.
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

// ProblemOf is [Problem] for any error; a defect shows nothing of its cause.
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
