package lock

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// Sentinel errors, matched with [errors.Is] by their fault code.
var (
	// ErrHeld matches the error of an Acquire that met another holder, or whose wait has ended.
	// [HolderOf] returns the holder's owner, and the RetryAfter of the [fault.Error] the remaining
	// lease.
	ErrHeld error = fault.New(fault.LockHeld, "the lock is held")
	// ErrNotHeld matches the error of a Renew or Release whose token holds no lease. [ReasonOf]
	// returns why.
	ErrNotHeld error = fault.New(fault.LockNotHeld, "the token does not hold the lock")
)

// Names of the members that this package adds to a [fault.Error].
const (
	memberHolder = "holder"
	memberReason = "reason"
	memberForced = "forced"
)

// Reason is why a token holds no lease.
type Reason string

const (
	// Expired means that the lease has ended, or that the token never had one.
	Expired Reason = "expired"
	// HeldByOther means that another token holds the lock.
	HeldByOther Reason = "held_by_other"
	// Forced means that Force ended the lease. In the HTTP API it is "expired" with "forced": true.
	Forced Reason = "forced"
)

// ReasonOf returns why a Renew or Release was refused, or "" if err does not match [ErrNotHeld].
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

// HolderOf returns the owner of a current holder, which may be "", or "" if err does not match
// [ErrHeld].
func HolderOf(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.LockHeld {
		return ""
	}
	owner, _ := f.Extra[memberHolder].(string)
	return owner
}

// NotHeld returns the error of a Renew or Release whose token holds no lease. It is for
// implementations of stores.
func NotHeld(reason Reason) error {
	switch reason {
	case HeldByOther:
		return fault.New(fault.LockNotHeld, "another token holds the lock; stop the work that it protects").
			With(memberReason, HeldByOther)
	case Forced:
		return fault.New(fault.LockNotHeld, "the lock was released by force; stop the work that it protects").
			With(memberReason, Expired).With(memberForced, true)
	default:
		return fault.New(fault.LockNotHeld, "the lease has expired; stop the work that it protects").
			With(memberReason, Expired)
	}
}

// Obstacle is why a lock cannot be granted.
type Obstacle int

const ( // the numbers are those of the reply of scripts/acquire.lua
	// Occupied means that another token holds the lock, or that every permit is in use.
	Occupied Obstacle = 0
	// Reserved means that the lock is free but reserved for the first waiter.
	Reserved Obstacle = 1
	// OtherMode means that the token itself holds the lock in the other mode.
	OtherMode Obstacle = 2
)

// Conflict describes an Acquire that was not granted.
type Conflict struct {
	Obstacle  Obstacle
	Holder    string        // owner of a current holder
	Remaining time.Duration // time until the lock may be free
}

// Held returns the error of an Acquire that met a conflict. It is for implementations of stores.
func Held(kind Kind, c Conflict) error {
	detail := "the lock is held by another token"
	switch {
	case c.Obstacle == Reserved:
		detail = "it is free but reserved for a caller that waits for it"
	case c.Obstacle == OtherMode:
		detail = "the token holds the lock in the other mode; release it first"
	case kind == Semaphore:
		detail = "every permit of the semaphore is in use"
	}

	// A RetryAfter of zero would mean that waiting does not help.
	retryAfter := max(c.Remaining, time.Millisecond)
	return fault.New(fault.LockHeld, "%s", detail).After(retryAfter).With(memberHolder, c.Holder)
}
