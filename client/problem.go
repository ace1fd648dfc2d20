package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// problem is an RFC 9457 document with the members of Sluice's contract.
type problem struct {
	Status       int      `json:"status"`
	Detail       string   `json:"detail"`
	Title        string   `json:"title"`
	Code         Code     `json:"code"`
	Instance     string   `json:"instance"`
	Errors       []Field  `json:"errors"`
	RetryAfterMS *int64   `json:"retry_after_ms"`
	Reason       string   `json:"reason"`
	Forced       bool     `json:"forced"`
	Holder       string   `json:"holder"`
	State        JobState `json:"state"`
	Attempt      int      `json:"attempt"`
	Message      string   `json:"message"` // of the gateway's own answers
}

// isProblem tells Sluice's own errors from those of whatever stands before it.
func isProblem(response *http.Response) bool {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/problem+json"
}

// contains tells whether the response is one of those that a call takes beside 2xx: the status is
// among them, and the body is the API's.
func contains(statuses []int, response *http.Response, text []byte) bool {
	var object map[string]json.RawMessage
	return slices.Contains(statuses, response.StatusCode) && json.Unmarshal(text, &object) == nil &&
		object["message"] == nil
}

// problem makes the error of an answer.
func (q call) problem(response *http.Response, text []byte) error {
	var p problem
	_ = json.Unmarshal(text, &p) // what is no JSON leaves it empty
	if isProblem(response) && p.Code != "" {
		e := p.asError(q.op, response.Header)
		e.Status = response.StatusCode
		return e
	}
	e := &Error{Op: q.op, Status: response.StatusCode, RequestID: requestID(response.Header),
		RetryAfter: retryAfter(response.Header)}
	said := ""
	if p.Message != "" {
		said = " (" + p.Message + ")"
	}
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Code, e.Detail = CodeForbidden,
			"the gateway refused the request"+said+": are the credentials, the region and the clock right, and may they invoke the API?"
	case status == http.StatusTooManyRequests:
		e.Code, e.Detail = CodeThrottled, "the gateway takes no more requests for now"+said
	case status >= 500:
		e.Code, e.Detail = CodeUnavailable, fmt.Sprintf("the gateway answered %d%s", status, said)
	case status == http.StatusRequestEntityTooLarge:
		e.Code, e.Detail = CodePayloadTooLarge, "the request is too large for the gateway"
	default:
		e.Code, e.Detail = CodeUnexpected, fmt.Sprintf("the answer is %d%s, and not the API's: is the endpoint right?",
			status, said)
	}
	return e
}

// asError makes the error of a problem; header is nil for one that stands in a batch.
func (p problem) asError(op string, header http.Header) *Error {
	e := &Error{
		Op: op, Code: p.Code, Status: p.Status, Detail: p.Detail, RequestID: p.Instance, RetryAfter: retryAfter(header),
		Fields: p.Errors, Reason: p.Reason, Forced: p.Forced, Holder: p.Holder, State: p.State, Attempt: p.Attempt,
	}
	if e.Detail == "" {
		e.Detail = p.Title
	}
	if id := requestID(header); id != "" {
		e.RequestID = id
	}
	if p.RetryAfterMS != nil { // finer than the header's whole seconds
		e.RetryAfter = milliseconds(*p.RetryAfterMS)
	}
	return e
}

func requestID(h http.Header) string {
	if id := h.Get("X-Request-Id"); id != "" {
		return id
	}
	return h.Get("Apigw-Requestid")
}

// retryAfter reads the header in both its forms (RFC 9110, 10.2.3); what makes no sense counts as
// absent.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// milliseconds saturates instead of overflowing.
func milliseconds(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// ceilMillis rounds up: what is due then is never early.
func ceilMillis(d time.Duration) int64 {
	return int64(d/time.Millisecond) + boolToInt(d%time.Millisecond > 0)
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
