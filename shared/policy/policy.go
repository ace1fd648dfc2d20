// Package policy describes a limiter's policies: what they are, which of them are valid, and which
// rules hold for a key. It is pure: it talks to no store.
package policy

// Algorithm names a way to count.
type Algorithm string

// The algorithms. Their math is in the package ratelimit.
const (
	FixedWindow          Algorithm = "fixed_window"
	SlidingWindow        Algorithm = "sliding_window"
	SlidingWindowCounter Algorithm = "sliding_window_counter"
	TokenBucket          Algorithm = "token_bucket"
	GCRA                 Algorithm = "gcra"
)

// Mode says what a decision does.
type Mode string

// The modes. Enforce is the default.
const (
	Enforce Mode = "enforce" // over the limit is denied
	Shadow  Mode = "shadow"  // decides and counts, but always allows
	Deny    Mode = "deny"    // always denied
	Allow   Mode = "allow"   // always allowed
)

// OnUnavailable says what decides while the store is away.
type OnUnavailable string

// The fallbacks. Local is the default.
const (
	UnavailableLocal OnUnavailable = "local" // counts in the instance's memory at LocalShare of each limit
	UnavailableAllow OnUnavailable = "allow"
	UnavailableDeny  OnUnavailable = "deny"
)

// Rule is one limit.
type Rule struct {
	Name      string    `json:"name"`
	Algorithm Algorithm `json:"algorithm"`
	// Limit is how much WindowMS admits: units of cost, at least 1.
	Limit int64 `json:"limit"`
	// WindowMS is 1 to 31,622,400,000 (366 days).
	WindowMS int64 `json:"window_ms"`
	// Burst is how much may pass at once; only for token_bucket and gcra. Zero means Limit.
	Burst int64 `json:"burst,omitzero"`
}

// Override replaces parts of a policy for a key, or for every key with a prefix ("bot-*").
type Override struct {
	Key   string `json:"key"`
	Mode  Mode   `json:"mode,omitzero"`  // empty: the policy's
	Rules []Rule `json:"rules,omitzero"` // none: the policy's
}

// Policy is a named set of rules, all of which hold at once.
type Policy struct {
	Name          string        `json:"name"`
	Description   string        `json:"description,omitzero"`
	Mode          Mode          `json:"mode"`
	OnUnavailable OnUnavailable `json:"on_unavailable"`
	// LocalShare is the part of each limit that one instance admits while the store is away: over
	// 0, up to 1. The default is 0.1.
	LocalShare float64 `json:"local_share"`
	// NoDenyCache makes every check ask the store, also for a key that is known to be denied.
	NoDenyCache bool       `json:"no_deny_cache,omitzero"`
	Rules       []Rule     `json:"rules"`
	Overrides   []Override `json:"overrides,omitzero"`
}
