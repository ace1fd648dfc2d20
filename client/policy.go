package client

import (
	"encoding/json"
	"fmt"
	"time"
)

// Algorithm selects how a rule counts requests.
type Algorithm string

// The algorithms of a [Rule].
const (
	AlgorithmFixedWindow          Algorithm = "fixed_window"
	AlgorithmSlidingWindow        Algorithm = "sliding_window"
	AlgorithmSlidingWindowCounter Algorithm = "sliding_window_counter"
	AlgorithmTokenBucket          Algorithm = "token_bucket"
	AlgorithmGCRA                 Algorithm = "gcra"
)

// PolicyMode selects whether a policy enforces its rules.
type PolicyMode string

// The modes of a [Policy].
const (
	PolicyEnforce PolicyMode = "enforce" // denies requests that exceed a rule; the default
	PolicyShadow  PolicyMode = "shadow"  // evaluates and charges the rules, but allows every request
	PolicyDeny    PolicyMode = "deny"    // denies every request
	PolicyAllow   PolicyMode = "allow"   // allows every request
)

// OnUnavailable selects how the API decides while Redis is unavailable.
type OnUnavailable string

// The fallbacks of a [Policy].
const (
	// OnUnavailableLocal counts in the memory of each function instance, which allows up to
	// [Policy.LocalShare] of each limit. It is the default.
	OnUnavailableLocal OnUnavailable = "local"
	OnUnavailableAllow OnUnavailable = "allow" // allows every request
	OnUnavailableDeny  OnUnavailable = "deny"  // denies every request
)

// Policy is a named set of rules that the rate limiter applies together: a request is allowed if
// every rule allows it. Its JSON form is the same as in the API.
type Policy struct {
	// Name is 1 to 128 characters: letters, digits and . _ : -, starting with a letter or digit.
	Name string `json:"name"`
	// Description is up to 1024 bytes.
	Description string `json:"description,omitzero"`
	// Mode defaults to [PolicyEnforce].
	Mode PolicyMode `json:"mode,omitzero"`
	// OnUnavailable defaults to [OnUnavailableLocal].
	OnUnavailable OnUnavailable `json:"on_unavailable,omitzero"`
	// LocalShare is the fraction of each limit that one function instance allows while Redis is
	// unavailable: greater than 0, up to 1. Defaults to 0.1.
	LocalShare float64 `json:"local_share,omitzero"`
	// NoDenyCache makes every check query Redis. By default, a function instance caches a denied
	// key until the denial ends.
	NoDenyCache bool `json:"no_deny_cache,omitzero"`
	// Rules are the limits of the policy: 1 to 8 rules.
	Rules []Rule `json:"rules"`
	// Overrides replace the mode or the rules for some keys. A policy has up to 1000 overrides.
	Overrides []Override `json:"overrides,omitzero"`
}

// Rule is one limit of a policy. Its JSON form is the same as in the API, with the window in
// milliseconds.
type Rule struct {
	// Name is unique in the policy; [Decision.Violated] reports it.
	Name string `json:"name"`
	// Algorithm selects how requests are counted. Required.
	Algorithm Algorithm `json:"algorithm"`
	// Limit is the number of units that a window allows: 1 to 1,000,000,000; up to 100,000 with
	// [AlgorithmSlidingWindow].
	Limit int64 `json:"limit"`
	// Window is the length of the window: 1 ms to 366 days, in whole milliseconds.
	Window time.Duration `json:"-"`
	// Burst is the maximum number of units that are allowed at the same time. Only
	// [AlgorithmTokenBucket] and [AlgorithmGCRA] support it. Zero means Limit.
	Burst int64 `json:"burst,omitzero"`
}

// Override replaces parts of a policy for some keys.
type Override struct {
	// Key is one key, or a prefix and a star: "bot-*" matches every key that begins with "bot-".
	Key string `json:"key"`
	// Mode replaces the policy's mode. Empty keeps it.
	Mode PolicyMode `json:"mode,omitzero"`
	// Rules replace the policy's rules. Nil keeps them.
	Rules []Rule `json:"rules,omitzero"`
}

// plainRule is a Rule without its methods, so that encoding/json encodes its fields.
type plainRule Rule

type ruleBody struct {
	plainRule

	WindowMS millis `json:"window_ms"`
}

// MarshalJSON implements json.Marshaler. It fails if the window is not a whole number of
// milliseconds.
func (r Rule) MarshalJSON() ([]byte, error) {
	if r.Window%time.Millisecond != 0 {
		return nil, fmt.Errorf("the window of the rule %q, %s, is not a whole number of milliseconds", r.Name, r.Window)
	}
	return json.Marshal(ruleBody{plainRule(r), millis(r.Window)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Rule) UnmarshalJSON(text []byte) error {
	var b ruleBody
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*r = Rule(b.plainRule)
	r.Window = time.Duration(b.WindowMS)
	return nil
}
