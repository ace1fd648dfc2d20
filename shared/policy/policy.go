package policy

import "time"

// Algorithm is the name of the algorithm by which a rule counts.
type Algorithm string

// The algorithms. Package ratelimit implements them.
const (
	FixedWindow          Algorithm = "fixed_window"
	SlidingWindow        Algorithm = "sliding_window"
	SlidingWindowCounter Algorithm = "sliding_window_counter"
	TokenBucket          Algorithm = "token_bucket"
	GCRA                 Algorithm = "gcra"
)

// Mode selects how a policy applies its limits.
type Mode string

// The modes. The default is Enforce.
const (
	Enforce Mode = "enforce" // deny checks over the limit
	Shadow  Mode = "shadow"  // count and report violations, but allow every check
	Deny    Mode = "deny"    // deny every check; count nothing
	Allow   Mode = "allow"   // allow every check; count nothing
)

// OnUnavailable selects how checks are decided while Redis is unavailable.
type OnUnavailable string

// The fallbacks. The default is UnavailableLocal.
const (
	UnavailableLocal OnUnavailable = "local" // count in the instance's memory, and grant LocalShare of each limit
	UnavailableAllow OnUnavailable = "allow" // allow every check
	UnavailableDeny  OnUnavailable = "deny"  // deny every check
)

// DefaultLocalShare is the share of each limit that one instance grants while Redis is unavailable.
const DefaultLocalShare = 0.1

// Rule is one limit.
type Rule struct {
	Name      string
	Algorithm Algorithm
	// Limit is the number of cost units that one window admits: 1 to [MaxLimit]. For a
	// SlidingWindow, the maximum is [MaxExactLimit].
	Limit int64
	// Window is a whole number of milliseconds, 1 ms to [MaxWindow].
	Window time.Duration
	// Burst is the capacity of a TokenBucket or GCRA rule in cost units: 1 to [MaxLimit]. 0 means
	// Limit. The other algorithms have no burst.
	Burst int64
}

// Override replaces the mode, the rules, or both, for one key or for all keys with a prefix
// ("bot-*").
type Override struct {
	Key   string
	Mode  Mode   // "" keeps the policy's mode
	Rules []Rule // nil keeps the policy's rules
}

// Policy is a named set of rules. A check must fit under all of them.
type Policy struct {
	Name        string
	Description string
	// Mode defaults to Enforce.
	Mode Mode
	// OnUnavailable defaults to UnavailableLocal.
	OnUnavailable OnUnavailable
	// LocalShare is the share of each limit that one instance grants while Redis is unavailable:
	// greater than 0, at most 1. 0 means [DefaultLocalShare].
	LocalShare float64
	// NoDenyCache disables the cache of denials: every check goes to Redis.
	NoDenyCache bool
	Rules       []Rule
	Overrides   []Override
}

// Capacity returns the maximum number of cost units that the rule can admit at one time: the burst
// if it is set, otherwise the limit.
func (r Rule) Capacity() int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Limit
}

// WorstCase returns the maximum number of cost units that the rule can admit in an interval of one
// window's length. With the limit L:
//
//   - fixed_window: 2L, half of it at the end of one window and half at the start of the next.
//   - sliding_window: L.
//   - sliding_window_counter: 2L - 1, because it assumes that the previous window's units were
//     spread evenly.
//   - token_bucket and gcra: burst + L, a full bucket plus the refill of one window.
func (r Rule) WorstCase() int64 {
	switch r.Algorithm {
	case SlidingWindow:
		return r.Limit
	case FixedWindow:
		return 2 * r.Limit
	case SlidingWindowCounter:
		return 2*r.Limit - 1
	default:
		return r.Capacity() + r.Limit
	}
}
