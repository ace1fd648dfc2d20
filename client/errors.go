package client

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a call can fail with. An [*Error] matches by its code.
var (
	ErrInvalidRequest     = errors.New("the request is not valid")
	ErrNotFound           = errors.New("not found") // also a job, queue or policy
	ErrJobNotFound        = errors.New("no such job")
	ErrQueueNotFound      = errors.New("no such queue")
	ErrPolicyNotFound     = errors.New("no such policy")
	ErrLockHeld           = errors.New("the lock is held")
	ErrLockNotHeld        = errors.New("the token does not hold the lock")
	ErrJobConflict        = errors.New("the job has left the state that the call needs")
	ErrPreconditionFailed = errors.New("the policy has changed")
	ErrPayloadTooLarge    = errors.New("the payload is too large")
	ErrQuotaExceeded      = errors.New("the quota is exceeded")
	ErrStoreUnavailable   = errors.New("a store cannot be reached")
	ErrForbidden          = errors.New("the gateway refused the request")
	ErrUnreachable        = errors.New("the API cannot be reached")
)

// Why a lock was lost. They are the cause of its context, and an [*Error] of a renewal or release
// matches the first three.
var (
	ErrExpired          = errors.New("the lease expired")
	ErrStolen           = errors.New("somebody else holds the lock")
	ErrForced           = errors.New("the lock was released by force")
	ErrStoreUnreachable = errors.New("the lease could not be renewed in time")
	ErrMaxHold          = errors.New("the lock was held for as long as MaxHold allows")
)

// Why a lock's context ended although the lock was not lost.
var (
	ErrUnlocked = errors.New("the lock was unlocked")
	ErrDetached = errors.New("the lock was handed over")
)

// Error is a call's failure.
type Error struct {
	// Op is what was being done: `acquiring the lock "report"`.
	Op string
	// Code is one of the contract's, or forbidden, throttled, unavailable, unreachable or
	// unexpected.
	Code Code
	// Status is the HTTP status, or 0 when there was no answer.
	Status int
	// Detail is one sentence for people.
	Detail string
	// RequestID finds the request in the logs of the API.
	RequestID string
	// RetryAfter is how long to wait before the same call may succeed; zero when that is not known.
	// For a lock that is held it is the remaining lease of its holder.
	RetryAfter time.Duration
	// Fields are the invalid inputs of an invalid_request.
	Fields []Field
	// Reason of a lock_not_held is "expired" or "held_by_other"; Forced says that it was released
	// by force.
	Reason string
	Forced bool
	// Holder is the public label of who holds a lock.
	Holder string
	// State and Attempt are where the job of a job_conflict is.
	State   JobState
	Attempt int

	unsent bool // the request surely never arrived
	cause  error
}

// Error implements error, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString("error " + e.Op + ": ")
	}
	b.WriteString(e.Detail)
	if e.Detail == "" {
		b.WriteString(string(e.Code))
	}
	if len(e.Fields) > 1 {
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

// Unwrap returns what kept the request from being answered.
func (e *Error) Unwrap() error { return e.cause }

// Is matches the sentinels of this package.
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
