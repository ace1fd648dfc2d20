package dynamolock

import (
	"encoding/json"
	"slices"

	"github.com/sluicehq/sluice/shared/lock"
)

// record is a lock as an item keeps it. Instants are µs since the epoch, by the clock of the
// function that wrote them. Its methods are the lock's rules, without a store and without a clock
// of their own.
type record struct {
	Fence   int64    `json:"fence"` // the last one given out
	Holders []holder `json:"holders,omitempty"`
	Ended   []ended  `json:"ended,omitempty"` // the newest last
}

type holder struct {
	Token    string          `json:"token"`
	Call     string          `json:"call,omitempty"` // the call that got it; none once the token has asked again
	Owner    string          `json:"owner,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Mode     lock.Mode       `json:"mode"`
	Fence    int64           `json:"fence"`
	Acquired int64           `json:"acquired"`
	Ends     int64           `json:"ends"`
}

// ended remembers how a token's lease ended, so that a repeated release succeeds and a forced one
// is told.
type ended struct {
	Token  string `json:"token"`
	Forced bool   `json:"forced,omitempty"`
}

// maxEnded bounds what is remembered.
const maxEnded = 16

// obstacle is who is in the way of an acquire.
type obstacle struct {
	owner     string
	remaining int64 // µs
	sameToken bool
}

// live drops the leases that have surely ended: those whose end is a margin ago, for a function
// whose clock is ahead.
func (r *record) live(now, margin int64) {
	r.Holders = slices.DeleteFunc(r.Holders, func(h holder) bool { return h.Ends+margin <= now })
}

// acquire lets a token in, or says who is in the way. A token that holds it in the same mode keeps
// its fence and gets a new lease.
func (r *record) acquire(h holder, now, margin int64) (holder, bool, *obstacle) {
	r.live(now, margin)
	for i, other := range r.Holders {
		if other.Token == h.Token && other.Mode == h.Mode {
			h.Fence, h.Acquired, h.Owner, h.Metadata, h.Call = other.Fence, other.Acquired, other.Owner, other.Metadata,
				""
			r.Holders[i] = h
			return h, true, nil
		}
	}
	var in *obstacle
	for _, other := range r.Holders {
		if other.Mode == lock.Shared && h.Mode == lock.Shared {
			continue
		}
		if remaining := other.Ends + margin - now; in == nil || remaining > in.remaining {
			in = &obstacle{owner: other.Owner, remaining: remaining, sameToken: other.Token == h.Token}
		}
	}
	if in != nil {
		return holder{}, false, in
	}
	r.Fence = max(r.Fence+1, now)
	h.Fence, h.Acquired = r.Fence, now
	r.Holders = append(r.Holders, h)
	r.Ended = slices.DeleteFunc(r.Ended, func(e ended) bool { return e.Token == h.Token })
	return h, false, nil
}

// renew extends a lease that has not ended by anybody's clock.
func (r *record) renew(token string, now, ends, margin int64) (holder, reason) {
	for i, h := range r.Holders {
		if h.Token == token && h.Ends > now {
			r.Holders[i].Ends = ends
			return r.Holders[i], ""
		}
	}
	return holder{}, r.why(token, now, margin)
}

// release gives a lease back, and again when it was given back before.
func (r *record) release(token string, now, margin int64) (held int64, changed bool, why reason) {
	for i, h := range r.Holders {
		if h.Token == token && h.Ends > now {
			r.Holders = slices.Delete(r.Holders, i, i+1)
			r.end(token, false)
			return now - h.Acquired, true, ""
		}
	}
	for _, e := range r.Ended {
		if e.Token == token && !e.Forced && len(r.Holders) == 0 {
			return 0, false, ""
		}
	}
	return 0, false, r.why(token, now, margin)
}

// giveUp gives back what a call got without knowing.
func (r *record) giveUp(token, call string) (changed bool) {
	before := len(r.Holders)
	r.Holders = slices.DeleteFunc(r.Holders, func(h holder) bool { return h.Token == token && h.Call == call })
	return len(r.Holders) < before
}

// force takes it from everybody.
func (r *record) force(now, margin int64) int64 {
	r.live(now, margin)
	for _, h := range r.Holders {
		r.end(h.Token, true)
	}
	n := int64(len(r.Holders))
	r.Holders = nil
	return n
}

func (r *record) end(token string, forced bool) {
	r.Ended = append(r.Ended, ended{token, forced})
	if extra := len(r.Ended) - maxEnded; extra > 0 {
		r.Ended = slices.Delete(r.Ended, 0, extra)
	}
}

// reason is why a token holds nothing.
type reason string

const (
	expired reason = lock.Expired
	taken   reason = lock.HeldByOther
	forced  reason = "forced"
)

func (r *record) why(token string, now, margin int64) reason {
	for _, h := range r.Holders {
		if h.Token != token && h.Mode == lock.Exclusive && h.Ends+margin > now {
			return taken
		}
	}
	for _, e := range r.Ended {
		if e.Token == token && e.Forced {
			return forced
		}
	}
	return expired
}

// until is when the last lease has surely ended, µs; 0 when nobody holds it.
func (r *record) until(margin int64) int64 {
	var last int64
	for _, h := range r.Holders {
		last = max(last, h.Ends+margin)
	}
	return last
}
