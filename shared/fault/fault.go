// Package fault is the one error type that crosses Sluice's borders.
//
// Domain packages return a [*Error] for everything a caller may learn, with a short stable code;
// any other error is a defect, which the HTTP border logs and answers as "internal". What is in
// Cause is logged and never sent.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Code names a kind of failure. It is part of the HTTP contract (RFC 9457 member "code").
type Code string

// The codes of the contract.
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

// Field is one invalid input: its path in the body, query or path ("rules[1].limit"), and what is
// wrong with it.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is a failure that a caller may learn of.
type Error struct {
	Code   Code
	Detail string // one sentence for the caller; says what to do where that is known
	Fields []Field
	// RetryAfter is how long to wait before the same call may succeed; zero means that waiting is
	// not known to help.
	RetryAfter time.Duration
	// Extra holds further members of the problem document, such as "holder", "reason" or "state".
	Extra map[string]any
	// Cause is for the log only.
	Cause error
}

// New returns an Error with a detail formatted like [fmt.Sprintf].
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Error implements error. The text is for logs: it may hold the cause.
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

// Is makes errors.Is(err, fault.New(code, "")) match by code.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// With returns a copy with one more member for the problem document.
func (e *Error) With(member string, value any) *Error {
	c := *e
	c.Extra = make(map[string]any, len(e.Extra)+1)
	maps.Copy(c.Extra, e.Extra)
	c.Extra[member] = value
	return &c
}

// After returns a copy that tells the caller when to try again.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns a copy with the cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// CodeOf returns the code that err carries, or "" when it carries none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Unavailable says that a store ("redis", "dynamodb") cannot be reached. The cause is logged, never
// sent.
func Unavailable(store string, cause error) *Error {
	return &Error{
		Code: StoreUnavailable,
		Detail: "the " + store +
			" store cannot be reached; nothing was changed, or it is safe to send the same request again",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}
