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

// problem is an RFC 9457 document with the members that Sluice adds.
type problem struct {
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Title      string   `json:"title"`
	Code       Code     `json:"code"`
	Instance   string   `json:"instance"`
	Errors     []Field  `json:"errors"`
	RetryAfter *millis  `json:"retry_after_ms"`
	Reason     string   `json:"reason"`
	Forced     bool     `json:"forced"`
	Holder     string   `json:"holder"`
	State      JobState `json:"state"`
	Attempt    int      `json:"attempt"`
	Message    string   `json:"message"` // in errors of the gateway
}

// accepts reports whether an answer outside 2xx is a result of the call: its status is one of
// q.statuses, and its body is a JSON object without the member "message" of a gateway error.
func (q call) accepts(status int, text []byte) bool {
	var object map[string]json.RawMessage
	return slices.Contains(q.statuses, status) && json.Unmarshal(text, &object) == nil && object["message"] == nil
}

// problem returns the error that an answer describes.
func (q call) problem(response *http.Response, text []byte) error {
	var p problem
	_ = json.Unmarshal(text, &p) // invalid JSON leaves p empty
	if isProblem(response) && p.Code != "" {
		e := p.asError(q.op, response.Header)
		e.Status = response.StatusCode
		return e
	}
	return q.gatewayError(response, p.Message)
}

// isProblem reports whether the answer is a problem document (RFC 9457). A gateway in front of
// Sluice does not write problem documents.
func isProblem(response *http.Response) bool {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/problem+json"
}

// gatewayError returns the error for an answer that is not a problem document of Sluice.
func (q call) gatewayError(response *http.Response, message string) error {
	e := &Error{
		Op: q.op, Status: response.StatusCode, RequestID: requestID(response.Header),
		RetryAfter: retryAfter(response.Header),
	}
	if message != "" {
		message = " (" + message + ")"
	}

	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Code = CodeForbidden
		e.Detail = "the gateway refused the request" + message +
			"; check the credentials, the region, the clock and the permission to invoke the API"
	case status == http.StatusTooManyRequests:
		e.Code, e.Detail = CodeThrottled, "the gateway throttled the request"+message
	case status >= 500:
		e.Code, e.Detail = CodeUnavailable, fmt.Sprintf("the gateway answered %d%s", status, message)
	case status == http.StatusRequestEntityTooLarge:
		e.Code, e.Detail = CodePayloadTooLarge, "the request is too large for the gateway"
	default:
		e.Code = CodeUnexpected
		e.Detail = fmt.Sprintf("the answer, %d%s, is not from Sluice; check the endpoint", status, message)
	}
	return e
}

// asError returns the error that a problem document describes. Pass the headers of the answer, or
// nil for a document that is one result of a batch.
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
	if p.RetryAfter != nil { // more precise than the header, which is in whole seconds
		e.RetryAfter = time.Duration(*p.RetryAfter)
	}
	return e
}

func requestID(h http.Header) string {
	if id := h.Get("X-Request-Id"); id != "" {
		return id
	}
	return h.Get("Apigw-Requestid")
}

// retryAfter parses the header Retry-After, which is a number of seconds or a date (RFC 9110,
// 10.2.3). It returns 0 for an invalid header.
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
