package lock

import (
	"time"

	"github.com/sluicehq/sluice/shared/fault"
)

// Reasons of lock_not_held.
const (
	Expired     = "expired"
	HeldByOther = "held_by_other"
)

// held is the refusal while somebody else holds the lock for another remaining; an empty holder is a lock kept for its first waiter.
func held(remaining time.Duration, holder string, kept bool) *fault.Error {
	detail := "somebody else holds it"
	if kept {
		detail = "it is free, but kept for those who already wait for it"
	}
	return fault.New(fault.LockHeld, "%s", detail).After(max(remaining, time.Millisecond)).With("holder", holder)
}

// notHeld is the answer to a token that holds nothing.
func notHeld(code int64) *fault.Error {
	switch code {
	case 1:
		return fault.New(fault.LockNotHeld, "somebody else holds it now: stop the work that it protects").With("reason", HeldByOther)
	case 2:
		return fault.New(fault.LockNotHeld, "it was released by force: stop the work that it protects").With("reason", Expired).With("forced", true)
	default:
		return fault.New(fault.LockNotHeld, "the lease has expired: stop the work that it protects").With("reason", Expired)
	}
}
