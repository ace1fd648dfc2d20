package lock

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// Sentinel errors. [errors.Is] matches them by fault code.
var (
	// ErrHeld matches the error of an Acquire if the lock is still held when the wait ends.
	// [HolderOf] returns the holder's owner. The RetryAfter of the [fault.Error] is the time until
	// the lock may be free.
	ErrHeld error = fault.New(fault.LockHeld, "the lock is held")
	// ErrNotHeld matches the error of a Renew or Release whose token holds no lease. [ReasonOf]
	// returns the reason.
	ErrNotHeld error = fault.New(fault.LockNotHeld, "the token does not hold the lock")
)

// Keys that this package adds to the Extra map of a [fault.Error].
const (
	memberHolder = "holder"
	memberReason = "reason"
	memberForced = "forced"
)

// Reason is the reason that a Renew or Release was refused.
type Reason string

const (
	// Expired means that the lease has ended, or that the token never had a lease.
	Expired Reason = "expired"
	// HeldByOther means that another token holds the lock.
	HeldByOther Reason = "held_by_other"
	// Forced means that Force ended the lease. For Forced, the HTTP API returns the reason
	// "expired" and "forced": true.
	Forced Reason = "forced"
)

// ReasonOf returns the reason that a Renew or Release was refused, or "" if err does not match
// [ErrNotHeld].
func ReasonOf(err error) Reason {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.LockNotHeld {
		return ""
	}
	if f.Extra[memberForced] == true {
		return Forced
	}
	reason, _ := f.Extra[memberReason].(Reason)
	return reason
}

// HolderOf returns the owner of a current holder. It returns "" if the holder has no owner or err
// does not match [ErrHeld].
func HolderOf(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.LockHeld {
		return ""
	}
	owner, _ := f.Extra[memberHolder].(string)
	return owner
}

// NotHeld returns the error of a Renew or Release whose token holds no lease. Only implementations
// of stores need it.
func NotHeld(reason Reason) error {
	switch reason {
	case HeldByOther:
		return fault.New(fault.LockNotHeld, "another token holds the lock; stop the work that the lock protects").
			With(memberReason, HeldByOther)
	case Forced:
		return fault.New(fault.LockNotHeld, "the lock was released by force; stop the work that the lock protects").
			With(memberReason, Expired).With(memberForced, true)
	default:
		return fault.New(fault.LockNotHeld, "the lease has expired; stop the work that the lock protects").
			With(memberReason, Expired)
	}
}

// Obstacle is the reason that an Acquire was not granted.
type Obstacle int

const ( // scripts/acquire.lua replies with the same numbers
	// Occupied means that another token holds the lock, or that every permit is in use.
	Occupied Obstacle = 0
	// Reserved means that the lock is free but reserved for the first waiter.
	Reserved Obstacle = 1
	// OtherMode means that the token already holds the lock in the other mode.
	OtherMode Obstacle = 2
)

// Conflict describes an Acquire that was not granted.
type Conflict struct {
	Obstacle  Obstacle
	Holder    string        // owner of a current holder
	Remaining time.Duration // time until the lock may be free
}

// Held returns the error of an Acquire that a conflict prevented. Only implementations of stores
// need it.
func Held(kind Kind, c Conflict) error {
	detail := "the lock is held by another token"
	switch {
	case c.Obstacle == Reserved:
		detail = "the lock is free but reserved for a caller that waits for it"
	case c.Obstacle == OtherMode:
		detail = "the token holds the lock in the other mode; release it first"
	case kind == Semaphore:
		detail = "every permit of the semaphore is in use"
	}

	// A RetryAfter of 0 would mean that a retry does not help.
	retryAfter := max(c.Remaining, time.Millisecond)
	return fault.New(fault.LockHeld, "%s", detail).After(retryAfter).With(memberHolder, c.Holder)
}
