package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// maxKey is the longest limiter key that the API accepts, in bytes.
const maxKey = 512

// Check asks for one key under a policy.
type Check struct {
	Policy string `json:"policy"`
	Key    string `json:"key"`            // 1 to 512 bytes of UTF-8
	Cost   int64  `json:"cost,omitempty"` // 1 to 10 000; 0 is 1
}

// RuleDecision is one rule's part of a decision.
type RuleDecision struct {
	Name         string    `json:"name"`
	Algorithm    Algorithm `json:"algorithm"`
	Limit        int64     `json:"limit"`
	WindowMS     int64     `json:"window_ms"`
	Remaining    int64     `json:"remaining"`
	ResetAfterMS int64     `json:"reset_after_ms"`
	RetryAfterMS *int64    `json:"retry_after_ms"`
}

// Decision is the answer to a check. Its numbers are those of its tightest rule.
type Decision struct {
	Allowed      bool   `json:"allowed"`
	Policy       string `json:"policy"`
	Key          string `json:"key"`
	Cost         int64  `json:"cost"`
	Remaining    int64  `json:"remaining"`
	Limit        int64  `json:"limit"`
	ResetAfterMS int64  `json:"reset_after_ms"`
	// RetryAfterMS is nil when waiting can never help, because the cost is over the limit.
	RetryAfterMS *int64 `json:"retry_after_ms"`
	// Violated is the rule that denied, or would have in shadow mode.
	Violated string     `json:"violated,omitempty"`
	Mode     PolicyMode `json:"mode"`
	// Degraded says that the store was away, and the policy's on_unavailable decided.
	Degraded bool           `json:"degraded"`
	Rules    []RuleDecision `json:"rules"`

	headers http.Header // RateLimit and RateLimit-Policy
}

// RetryAfter is how long to wait before the same check may be allowed, or false when that can never
// be.
func (d Decision) RetryAfter() (time.Duration, bool) {
	if d.RetryAfterMS == nil {
		return 0, false
	}
	return milliseconds(*d.RetryAfterMS), true
}

// CheckOption changes how a check is made.
type CheckOption func(*call)

// Repeatable allows a check to be repeated when its answer was lost. It may then be charged twice,
// but is never let pass unasked.
func Repeatable() CheckOption { return func(q *call) { q.repeat = always } }

// Allow charges one unit and tells whether it may pass.
func (c *Client) Allow(ctx context.Context, policyName, key string, options ...CheckOption) (bool, error) {
	d, err := c.Check(ctx, Check{Policy: policyName, Key: key}, options...)
	return d.Allowed, err
}

// Check charges the policy's rules for a key, all or none. A denial charges nothing, and is no
// error.
//
// It is not repeated once it may have been charged; see [Repeatable]. Errors: [ErrPolicyNotFound],
// [ErrInvalidRequest], [ErrUnreachable].
func (c *Client) Check(ctx context.Context, check Check, options ...CheckOption) (Decision, error) {
	request := call{method: "POST", body: charge{check.Key, check.Cost}, statuses: []int{http.StatusTooManyRequests},
		repeat: unsent}
	for _, o := range options {
		o(&request)
	}
	return c.decide(ctx, "checking", check.Policy, request, "check")
}

// CheckAll charges up to 20 checks, all or none: when one denies, none is charged. allowed is
// whether all are.
func (c *Client) CheckAll(ctx context.Context, checks []Check,
	options ...CheckOption) (decisions []Decision, allowed bool, err error) {
	var b struct {
		Decisions []Decision `json:"decisions"`
	}
	request := call{
		op: "checking limits", method: "POST", path: pathTo("v1", "limits", "check"),
		body: map[string]any{"checks": checks}, out: &b,
		statuses: []int{http.StatusTooManyRequests}, repeat: unsent,
	}
	for _, o := range options {
		o(&request)
	}
	r, err := c.do(ctx, request)
	if err != nil {
		return nil, false, err
	}
	for i := range b.Decisions {
		b.Decisions[i].headers = r.header
	}
	return b.Decisions, r.status == http.StatusOK, nil
}

// Peek returns the decision as it would be for one unit. Nothing is charged.
func (c *Client) Peek(ctx context.Context, policyName, key string) (Decision, error) {
	return c.decide(ctx, "peeking at", policyName, call{method: "GET", query: url.Values{"key": {key}}})
}

// Refund gives back what was charged, never above full. It is not repeated once it may have been
// done.
func (c *Client) Refund(ctx context.Context, policyName, key string, cost int64) (Decision, error) {
	return c.decide(ctx, "refunding", policyName, call{method: "POST", body: charge{key, cost}, repeat: unsent},
		"refund")
}

// Reset makes the key start afresh.
func (c *Client) Reset(ctx context.Context, policyName, key string) error {
	_, err := c.limit(ctx, "resetting", policyName, call{method: "DELETE", query: url.Values{"key": {key}}})
	return err
}

type charge struct {
	Key  string `json:"key"`
	Cost int64  `json:"cost,omitempty"`
}

func (c *Client) decide(ctx context.Context, doing, name string, request call, action ...string) (Decision, error) {
	var d Decision
	request.out = &d
	r, err := c.limit(ctx, doing, name, request, action...)
	d.headers = r.header
	return d, err
}

func (c *Client) limit(ctx context.Context, doing, name string, request call, action ...string) (reply, error) {
	request.op = fmt.Sprintf("%s the limit %q", doing, name)
	if err := checkName(request.op, "policy", name); err != nil {
		return reply{}, err
	}
	request.path = pathTo(append([]string{"v1", "limits", name}, action...)...)
	return c.do(ctx, request)
}
