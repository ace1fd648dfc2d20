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

// PolicyMode selects what a policy does with a request that exceeds its rules.
type PolicyMode string

// The modes of a [Policy].
const (
	PolicyEnforce PolicyMode = "enforce" // denies what exceeds the limit; the default
	PolicyShadow  PolicyMode = "shadow"  // evaluates and charges the rules, but allows everything
	PolicyDeny    PolicyMode = "deny"    // denies everything
	PolicyAllow   PolicyMode = "allow"   // allows everything
)

// OnUnavailable selects how the API decides while Redis is unavailable.
type OnUnavailable string

// The fallbacks of a [Policy].
const (
	// OnUnavailableLocal counts in the memory of each function instance, up to
	// [Policy.LocalShare] of each limit. It is the default.
	OnUnavailableLocal OnUnavailable = "local"
	OnUnavailableAllow OnUnavailable = "allow" // allows everything
	OnUnavailableDeny  OnUnavailable = "deny"  // denies everything
)

// Policy is a named set of rules that the rate limiter applies together: a request is allowed if
// every rule allows it. Its JSON form is that of the API.
type Policy struct {
	// Name is 1 to 128 characters: letters, digits and . _ : -, starting with a letter or digit.
	Name string `json:"name"`
	// Description is up to 1024 bytes.
	Description string `json:"description,omitzero"`
	// Mode defaults to [PolicyEnforce].
	Mode PolicyMode `json:"mode,omitzero"`
	// OnUnavailable defaults to [OnUnavailableLocal].
	OnUnavailable OnUnavailable `json:"on_unavailable,omitzero"`
	// LocalShare is the part of each limit that one function instance allows while Redis is
	// unavailable: over 0, up to 1. Defaults to 0.1.
	LocalShare float64 `json:"local_share,omitzero"`
	// NoDenyCache makes every check query Redis. By default a function instance remembers a denied
	// key until the denial ends.
	NoDenyCache bool `json:"no_deny_cache,omitzero"`
	// Rules are the limits: 1 to 8.
	Rules []Rule `json:"rules"`
	// Overrides replace the mode or the rules for some keys: up to 1000.
	Overrides []Override `json:"overrides,omitzero"`
}

// Rule is one limit of a policy. Its JSON form is that of the API, with the window in milliseconds.
type Rule struct {
	// Name is unique in the policy; [Decision.Violated] reports it.
	Name string `json:"name"`
	// Algorithm selects how requests are counted. Required.
	Algorithm Algorithm `json:"algorithm"`
	// Limit is how many units of cost a window allows: 1 to 1,000,000,000; up to 100,000 with
	// [AlgorithmSlidingWindow].
	Limit int64 `json:"limit"`
	// Window is the length of the window: 1 ms to 366 days, in whole milliseconds.
	Window time.Duration `json:"-"`
	// Burst is how many units are allowed at one instant, with [AlgorithmTokenBucket] and
	// [AlgorithmGCRA] only. Zero means Limit.
	Burst int64 `json:"burst,omitzero"`
}

// Override replaces parts of a policy for some keys.
type Override struct {
	// Key is one key, or a prefix of keys when it ends with a star: "bot-*".
	Key string `json:"key"`
	// Mode replaces the policy's mode. Empty keeps it.
	Mode PolicyMode `json:"mode,omitzero"`
	// Rules replace the policy's rules. Nil keeps them.
	Rules []Rule `json:"rules,omitzero"`
}

// plainRule is a Rule without its methods, for its JSON form.
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
