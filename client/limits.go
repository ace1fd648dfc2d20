package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// maxKey is the maximum length of a limiter key, in bytes.
const maxKey = 512

// Check describes a charge of a key under a policy.
type Check struct {
	Policy string `json:"policy"`
	// Key identifies the limited party, for example a user: 1 to 512 bytes of UTF-8.
	Key string `json:"key"`
	// Cost is the number of units to charge: 1 to 10,000. Zero means 1.
	Cost int64 `json:"cost,omitempty"`
}

// CheckOption is an option of [Client.Check], [Client.CheckAll] and [Client.Allow].
type CheckOption func(*call)

// Repeatable makes the client retry a check whose answer was lost. The API may then charge the key
// twice.
func Repeatable() CheckOption { return func(q *call) { q.retry = retryIdempotent } }

// Allow charges one unit and reports whether the request may proceed. Errors: same as
// [Client.Check].
func (c *Client) Allow(ctx context.Context, policyName, key string, options ...CheckOption) (bool, error) {
	d, err := c.Check(ctx, Check{Policy: policyName, Key: key}, options...)
	return d.Allowed, err
}

// Check charges a key under every rule of a policy. If a rule denies the request, nothing is
// charged. A denial is not an error.
//
// If the answer to a check was lost, the client does not retry the check, because the API may have
// charged the key; see [Repeatable]. Errors: [ErrPolicyNotFound], [ErrInvalidRequest],
// [ErrUnreachable].
func (c *Client) Check(ctx context.Context, check Check, options ...CheckOption) (Decision, error) {
	request := call{
		method: "POST", body: charge{check.Key, check.Cost}, statuses: []int{http.StatusTooManyRequests},
		retry: retryUnsent,
	}
	for _, o := range options {
		o(&request)
	}
	return c.decide(ctx, "checking", check.Policy, request, "check")
}

// CheckAll makes up to 20 checks, and reports whether all are allowed. If a check is denied,
// nothing is charged. Errors: same as [Client.Check].
func (c *Client) CheckAll(
	ctx context.Context, checks []Check, options ...CheckOption,
) (decisions []Decision, allowed bool, err error) {
	var b struct {
		Decisions []Decision `json:"decisions"`
	}
	request := call{
		op: "checking limits", method: "POST", path: pathTo("v1", "limits", "check"),
		body: map[string]any{"checks": checks}, out: &b,
		statuses: []int{http.StatusTooManyRequests}, retry: retryUnsent,
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

// Peek returns the decision that a check of one unit would get now, and charges nothing. Errors:
// [ErrPolicyNotFound], [ErrInvalidRequest].
func (c *Client) Peek(ctx context.Context, policyName, key string) (Decision, error) {
	return c.decide(ctx, "peeking at", policyName, call{method: "GET", query: url.Values{"key": {key}}})
}

// Refund returns charged units to a key, up to its limit. If the answer was lost, the client does
// not retry the refund. Errors: [ErrPolicyNotFound], [ErrInvalidRequest].
func (c *Client) Refund(ctx context.Context, policyName, key string, cost int64) (Decision, error) {
	request := call{method: "POST", body: charge{key, cost}, retry: retryUnsent}
	return c.decide(ctx, "refunding", policyName, request, "refund")
}

// Reset makes the whole limit available to a key again. Errors: [ErrPolicyNotFound],
// [ErrInvalidRequest].
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
