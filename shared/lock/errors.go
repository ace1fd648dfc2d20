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

// held is the refusal of an attempt that met somebody.
func (a attempt) held() *fault.Error {
	detail := "somebody else holds it"
	switch a.why {
	case keptForWaiter:
		detail = "it is free, but kept for those who already wait for it"
	case heldInOtherMode:
		detail = "the token holds it in the other mode: release it first"
	case heldByOther:
	}
	return fault.New(fault.LockHeld, "%s", detail).After(max(a.remaining, time.Millisecond)).With("holder", a.holder)
}

// Replies of the scripts to a token that holds nothing.
const (
	takenByOther    = -2
	takenByForce    = -3
	releasedAlready = -4
)

// notHeld is the answer to such a token.
func notHeld(reply int64) *fault.Error {
	switch reply {
	case takenByOther:
		return fault.New(fault.LockNotHeld, "somebody else holds it now: stop the work that it protects").With("reason",
			HeldByOther)
	case takenByForce:
		return fault.New(fault.LockNotHeld, "it was released by force: stop the work that it protects").With("reason",
			Expired).With("forced", true)
	default:
		return fault.New(fault.LockNotHeld, "the lease has expired: stop the work that it protects").With("reason",
			Expired)
	}
}
