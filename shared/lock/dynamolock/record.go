package dynamolock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/shared/lock"
)

// record is the state of one lock, which an item stores as JSON. Its methods implement the rules of
// the lock. They access no store, and they get the current time and the margin (see [Margin]) as
// arguments. Each stored time is by the clock of the process that wrote it.
type record struct {
	Fence   int64    `json:"fence"` // the last granted fence
	Holders []holder `json:"holders,omitempty"`
	Ended   []ended  `json:"ended,omitempty"` // oldest first
}

type holder struct {
	Token    string          `json:"token"`
	Call     string          `json:"call,omitempty"` // ID of the Acquire; "" after a repeated Acquire
	Owner    string          `json:"owner,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Mode     lock.Mode       `json:"mode"`
	Fence    int64           `json:"fence"`
	Acquired instant         `json:"acquired"`
	Ends     instant         `json:"ends"`
}

// ended records how a token's lease ended, so that a repeated release succeeds and a holder whose
// lease ended by force gets [lock.Forced].
type ended struct {
	Token  string `json:"token"`
	Forced bool   `json:"forced,omitempty"`
}

// maxEnded is the maximum number of ended leases in a record.
const maxEnded = 16

// instant is a time that an item stores as microseconds since the epoch.
type instant struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (i instant) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, i.UnixMicro(), 10), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (i *instant) UnmarshalJSON(text []byte) error {
	us, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("error decoding a time: %w", err)
	}
	i.Time = time.UnixMicro(us).UTC()
	return nil
}

// dropEnded removes the leases that ended at least margin ago.
func (r *record) dropEnded(now time.Time, margin time.Duration) {
	r.Holders = slices.DeleteFunc(r.Holders, func(h holder) bool { return !h.Ends.Add(margin).After(now) })
}

// acquire grants a lease, or returns the conflict that prevents it. If the token already holds the
// lock in the same mode, acquire extends the lease and keeps its fence, owner and metadata.
func (r *record) acquire(
	h holder, now time.Time, margin time.Duration,
) (granted holder, reacquired bool, conflict *lock.Conflict) {
	r.dropEnded(now, margin)
	if i := r.index(h.Token); i >= 0 && r.Holders[i].Mode == h.Mode {
		r.Holders[i].Ends = h.Ends
		r.Holders[i].Call = "" // two calls share the lease now, so neither may abandon it
		return r.Holders[i], true, nil
	}
	if c := r.conflict(h, now, margin); c != nil {
		return holder{}, false, c
	}

	r.Fence = max(r.Fence+1, now.UnixMicro())
	h.Fence, h.Acquired = r.Fence, instant{now}
	r.Holders = append(r.Holders, h)
	r.Ended = slices.DeleteFunc(r.Ended, func(e ended) bool { return e.Token == h.Token })
	return h, false, nil
}

// conflict returns the conflict with the holder that excludes h for the longest time. It returns
// nil if no holder excludes h.
func (r *record) conflict(h holder, now time.Time, margin time.Duration) *lock.Conflict {
	var longest *lock.Conflict
	for _, other := range r.Holders {
		if other.Mode == lock.Shared && h.Mode == lock.Shared {
			continue
		}
		remaining := other.Ends.Add(margin).Sub(now)
		if longest != nil && remaining <= longest.Remaining {
			continue
		}
		longest = &lock.Conflict{Obstacle: lock.Occupied, Holder: other.Owner, Remaining: remaining}
		if other.Token == h.Token {
			longest.Obstacle = lock.OtherMode
		}
	}
	return longest
}

// renew extends a lease that has not ended. If the token holds no lease, renew returns the reason.
func (r *record) renew(token string, now time.Time, ends instant, margin time.Duration) (holder, lock.Reason) {
	i := r.index(token)
	if i < 0 || !r.Holders[i].Ends.After(now) {
		return holder{}, r.reason(token, now, margin)
	}
	r.Holders[i].Ends = ends
	return r.Holders[i], ""
}

// release ends a lease and returns the time that the token held it. While the lock is free, a
// repeated release succeeds and changes nothing. Otherwise, if the token holds no lease, release
// returns the reason.
func (r *record) release(
	token string, now time.Time, margin time.Duration,
) (held time.Duration, changed bool, reason lock.Reason) {
	if i := r.index(token); i >= 0 && r.Holders[i].Ends.After(now) {
		held = now.Sub(r.Holders[i].Acquired.Time)
		r.Holders = slices.Delete(r.Holders, i, i+1)
		r.recordEnd(token, false)
		return held, true, ""
	}
	if len(r.Holders) == 0 && slices.Contains(r.Ended, ended{Token: token}) {
		return 0, false, ""
	}
	return 0, false, r.reason(token, now, margin)
}

// abandon removes the lease that a call acquired, and reports whether there was a lease to remove.
func (r *record) abandon(token, call string) bool {
	before := len(r.Holders)
	r.Holders = slices.DeleteFunc(r.Holders, func(h holder) bool { return h.Token == token && h.Call == call })
	return len(r.Holders) < before
}

// force ends all leases and returns their number.
func (r *record) force(now time.Time, margin time.Duration) int64 {
	r.dropEnded(now, margin)
	for _, h := range r.Holders {
		r.recordEnd(h.Token, true)
	}
	n := int64(len(r.Holders))
	r.Holders = nil
	return n
}

func (r *record) recordEnd(token string, forced bool) {
	r.Ended = append(r.Ended, ended{token, forced})
	if extra := len(r.Ended) - maxEnded; extra > 0 {
		r.Ended = slices.Delete(r.Ended, 0, extra)
	}
}

// index returns the position of the token's lease, or -1.
func (r *record) index(token string) int {
	return slices.IndexFunc(r.Holders, func(h holder) bool { return h.Token == token })
}

// reason returns the reason that a token holds no lease.
func (r *record) reason(token string, now time.Time, margin time.Duration) lock.Reason {
	for _, h := range r.Holders {
		if h.Token != token && h.Mode == lock.Exclusive && h.Ends.Add(margin).After(now) {
			return lock.HeldByOther
		}
	}
	if slices.Contains(r.Ended, ended{Token: token, Forced: true}) {
		return lock.Forced
	}
	return lock.Expired
}

// lastEnd returns the latest end of a lease, or the zero time if there are no leases.
func (r *record) lastEnd() time.Time {
	var last time.Time
	for _, h := range r.Holders {
		if h.Ends.After(last) {
			last = h.Ends.Time
		}
	}
	return last
}
