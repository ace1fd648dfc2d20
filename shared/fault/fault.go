// Package fault defines the errors that callers of Sluice see.
//
// Domain packages return an [*Error], which has a short stable code, for every failure that a
// caller can act on. Any other error is a defect: the HTTP API logs it and answers "internal". To
// check an error for a code, use [errors.Is] with a sentinel error of the domain package, or
// [CodeOf].
package fault

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Code identifies the kind of a failure. In the HTTP API, it is the member "code" of problem
// documents (RFC 9457).
type Code string

// The codes of the HTTP API.
const (
	InvalidRequest       Code = "invalid_request"
	NotFound             Code = "not_found"
	JobNotFound          Code = "job_not_found"
	QueueNotFound        Code = "queue_not_found"
	PolicyNotFound       Code = "policy_not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	LockHeld             Code = "lock_held"
	LockNotHeld          Code = "lock_not_held"
	JobConflict          Code = "job_conflict"
	PreconditionFailed   Code = "precondition_failed"
	PayloadTooLarge      Code = "payload_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	QuotaExceeded        Code = "quota_exceeded"
	Internal             Code = "internal"
	StoreUnavailable     Code = "store_unavailable"
	DeadlineExceeded     Code = "deadline_exceeded"
)

// Field describes one invalid input.
type Field struct {
	// Field is the path of the input in the body, such as "rules[1].limit", or its name in the
	// query or the path.
	Field string `json:"field"`
	// Message describes a valid input, for example "must be at least 1".
	Message string `json:"message"`
}

// Error is a failure that a caller can act on.
type Error struct {
	Code Code
	// Detail is one sentence for the caller: what failed and, if possible, what to do.
	Detail string
	// Fields lists the invalid inputs of an invalid_request.
	Fields []Field
	// RetryAfter is the time to wait before a retry of the same call may succeed. Zero means
	// unknown.
	RetryAfter time.Duration
	// Extra holds further members of the problem document, such as "holder", "reason" or "state".
	Extra map[string]any
	// Cause is written to the log and never sent to a caller.
	Cause error
}

// New returns an Error whose detail is formatted with [fmt.Sprintf].
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Error implements error. The text is for logs: it contains the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, f := range e.Fields {
		b.WriteString("; " + f.Field + ": " + f.Message)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target has the same code, for errors.Is.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// With returns a copy with one more entry in Extra.
func (e *Error) With(member string, value any) *Error {
	c := *e
	c.Extra = make(map[string]any, len(e.Extra)+1)
	maps.Copy(c.Extra, e.Extra)
	c.Extra[member] = value
	return &c
}

// After returns a copy with RetryAfter set to d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns a copy with Cause set to cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// CodeOf returns the code of the [*Error] that err wraps, or "" if it wraps none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Unavailable returns a store_unavailable error for a store ("redis", "dynamodb"), with a
// RetryAfter of one second.
func Unavailable(store string, cause error) *Error {
	return &Error{
		Code:       StoreUnavailable,
		Detail:     "the " + store + " store is unavailable; it is safe to send the same request again",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}
