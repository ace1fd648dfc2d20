package client

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sentinel errors of failed calls. With errors.Is, an [*Error] matches the sentinel of its code.
var (
	ErrInvalidRequest     = errors.New("the request is invalid")
	ErrNotFound           = errors.New("not found") // matches every 404, including the next three errors
	ErrJobNotFound        = errors.New("the job does not exist")
	ErrQueueNotFound      = errors.New("the queue does not exist")
	ErrPolicyNotFound     = errors.New("the policy does not exist")
	ErrLockHeld           = errors.New("the lock is held")
	ErrLockNotHeld        = errors.New("the token does not hold the lock")
	ErrJobConflict        = errors.New("the job is in another state")
	ErrPreconditionFailed = errors.New("the policy has changed")
	ErrPayloadTooLarge    = errors.New("the payload is too large")
	ErrQuotaExceeded      = errors.New("the quota is exceeded")
	ErrStoreUnavailable   = errors.New("a store is unavailable")
	ErrForbidden          = errors.New("the gateway refused the request")
	ErrUnreachable        = errors.New("the API is unreachable")
)

// Reasons why a lock was lost. context.Cause of the lock's context returns an error that matches
// one of them. The [*Error] of a renewal or release can also match one of the first three.
var (
	ErrExpired          = errors.New("the lease expired")
	ErrStolen           = errors.New("another holder has the lock")
	ErrForced           = errors.New("the lock was released by force")
	ErrStoreUnreachable = errors.New("the lease could not be renewed in time")
	ErrMaxHold          = errors.New("the lock was held for MaxHold")
)

// Reasons why a lock's context ended although the lock was not lost.
var (
	ErrUnlocked = errors.New("the lock was unlocked")
	ErrDetached = errors.New("the lock was detached")
)

// Error is the failure of a call.
type Error struct {
	// Op describes the call: `acquiring the lock "report"`.
	Op string
	// Code identifies the kind of failure.
	Code Code
	// Status is the HTTP status, or 0 if there was no answer.
	Status int
	// Detail describes the failure in one sentence.
	Detail string
	// RequestID identifies the request in the logs of the API.
	RequestID string
	// RetryAfter is the time after which the same call may succeed, or zero if the API sent none.
	// If Code is [CodeLockHeld], it is the remaining lease of the holder.
	RetryAfter time.Duration
	// Fields are the invalid inputs if Code is [CodeInvalidRequest].
	Fields []Field
	// Reason is "expired" or "held_by_other" if Code is [CodeLockNotHeld].
	Reason string
	// Forced reports that the lock was released by force. It is set only if Code is
	// [CodeLockNotHeld].
	Forced bool
	// Holder is the owner label of the current holder if Code is [CodeLockHeld].
	Holder string
	// State is the state of the job if Code is [CodeJobConflict].
	State JobState
	// Attempt is the number of the job's current attempt if Code is [CodeJobConflict].
	Attempt int

	neverSent bool // the request certainly never reached the API
	cause     error
}

// Error implements error. The text is one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString("error " + e.Op + ": ")
	}
	if e.Detail != "" {
		b.WriteString(e.Detail)
	} else {
		b.WriteString(string(e.Code))
	}

	if len(e.Fields) > 1 { // a single field is already described by Detail
		for _, f := range e.Fields {
			b.WriteString("; " + f.Field + " " + f.Message)
		}
	}
	if e.Holder != "" {
		fmt.Fprintf(&b, " (%s, for another %s)", e.Holder, e.RetryAfter)
	}
	if e.cause != nil {
		b.WriteString(": " + e.cause.Error())
	}
	return b.String()
}

// Unwrap returns the network or decoding error if the request got no valid answer, otherwise nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a sentinel error of this package that e matches.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Status == 404
	case ErrExpired:
		return e.Code == CodeLockNotHeld && e.Reason == "expired" && !e.Forced
	case ErrForced:
		return e.Code == CodeLockNotHeld && e.Forced
	case ErrStolen:
		return e.Code == CodeLockNotHeld && e.Reason == "held_by_other"
	}
	sentinel := sentinelOf(e.Code)
	return sentinel != nil && target == sentinel
}

func sentinelOf(code Code) error {
	switch code {
	case CodeInvalidRequest, CodeUnsupportedMediaType, CodeMethodNotAllowed:
		return ErrInvalidRequest
	case CodeJobNotFound:
		return ErrJobNotFound
	case CodeQueueNotFound:
		return ErrQueueNotFound
	case CodePolicyNotFound:
		return ErrPolicyNotFound
	case CodeLockHeld:
		return ErrLockHeld
	case CodeLockNotHeld:
		return ErrLockNotHeld
	case CodeJobConflict:
		return ErrJobConflict
	case CodePreconditionFailed:
		return ErrPreconditionFailed
	case CodePayloadTooLarge:
		return ErrPayloadTooLarge
	case CodeQuotaExceeded:
		return ErrQuotaExceeded
	case CodeStoreUnavailable:
		return ErrStoreUnavailable
	case CodeForbidden:
		return ErrForbidden
	case CodeUnreachable, CodeUnavailable:
		return ErrUnreachable
	default:
		return nil
	}
}
