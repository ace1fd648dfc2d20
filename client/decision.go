package client

import (
	"encoding/json"
	"net/http"
	"time"
)

// Decision is the result of a check. Its numbers describe the rule that is closest to its limit.
// Its JSON form is the same as in the API, with durations in milliseconds.
type Decision struct {
	// Allowed reports whether the request may proceed.
	Allowed bool   `json:"allowed"`
	Policy  string `json:"policy"`
	Key     string `json:"key"`
	// Cost is the number of units that the check requested.
	Cost int64 `json:"cost"`
	// Remaining is the number of units left.
	Remaining int64 `json:"remaining"`
	Limit     int64 `json:"limit"`
	// ResetAfter is the time until the limit is fully available again.
	ResetAfter time.Duration `json:"-"`
	// RetryAfter is the time until the same check may be allowed: zero if it would be allowed now,
	// nil if it is never allowed because its cost exceeds the limit.
	RetryAfter *time.Duration `json:"-"`
	// Violated is the name of the rule that denied the request. In the mode [PolicyShadow], it is
	// the rule that would have denied the request.
	Violated string `json:"violated,omitempty"`
	// Mode is the mode that applies to the key.
	Mode PolicyMode `json:"mode"`
	// Degraded reports that the API applied the policy's OnUnavailable, because Redis was
	// unavailable.
	Degraded bool `json:"degraded"`
	// Rules are the decisions of the individual rules, in the order of the policy.
	Rules []RuleDecision `json:"rules"`

	headers http.Header // RateLimit and RateLimit-Policy
}

// RuleDecision is the decision of one rule in a [Decision].
type RuleDecision struct {
	Name      string    `json:"name"`
	Algorithm Algorithm `json:"algorithm"`
	Limit     int64     `json:"limit"`
	// Window is the length of the rule's window.
	Window time.Duration `json:"-"`
	// Remaining is the number of units left.
	Remaining int64 `json:"remaining"`
	// ResetAfter is the time until the limit is fully available again.
	ResetAfter time.Duration `json:"-"`
	// RetryAfter is like [Decision.RetryAfter], for this rule alone.
	RetryAfter *time.Duration `json:"-"`
}

type plainDecision Decision

type decisionBody struct {
	plainDecision

	ResetAfterMS millis  `json:"reset_after_ms"`
	RetryAfterMS *millis `json:"retry_after_ms"`
}

// MarshalJSON implements json.Marshaler.
func (d Decision) MarshalJSON() ([]byte, error) {
	return encodeJSON(decisionBody{plainDecision(d), millis(d.ResetAfter), (*millis)(d.RetryAfter)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Decision) UnmarshalJSON(text []byte) error {
	var b decisionBody
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*d = Decision(b.plainDecision)
	d.ResetAfter, d.RetryAfter = time.Duration(b.ResetAfterMS), (*time.Duration)(b.RetryAfterMS)
	return nil
}

type plainRuleDecision RuleDecision

type ruleDecisionBody struct {
	plainRuleDecision

	WindowMS     millis  `json:"window_ms"`
	ResetAfterMS millis  `json:"reset_after_ms"`
	RetryAfterMS *millis `json:"retry_after_ms"`
}

// MarshalJSON implements json.Marshaler.
func (d RuleDecision) MarshalJSON() ([]byte, error) {
	return encodeJSON(ruleDecisionBody{
		plainRuleDecision(d), millis(d.Window), millis(d.ResetAfter), (*millis)(d.RetryAfter),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *RuleDecision) UnmarshalJSON(text []byte) error {
	var b ruleDecisionBody
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*d = RuleDecision(b.plainRuleDecision)
	d.Window, d.ResetAfter = time.Duration(b.WindowMS), time.Duration(b.ResetAfterMS)
	d.RetryAfter = (*time.Duration)(b.RetryAfterMS)
	return nil
}
