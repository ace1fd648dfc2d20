package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// StoredPolicy is a policy as the API stores it.
type StoredPolicy struct {
	Policy
	// Version starts at 1 and rises by one with every change.
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	// ETag identifies this version: see [IfMatch].
	ETag string `json:"-"`
}

// Condition makes a change depend on what is stored.
type Condition struct{ header, value string }

// IfMatch changes the policy only when it is still the one with that [StoredPolicy.ETag]; else
// [ErrPreconditionFailed]. "*" is any that exists.
func IfMatch(etag string) Condition { return Condition{"If-Match", etag} }

// IfNoneMatch creates the policy only when there is none of its name; else [ErrPreconditionFailed].
func IfNoneMatch() Condition { return Condition{"If-None-Match", "*"} }

// GetPolicy reads a policy. Errors: [ErrPolicyNotFound].
func (c *Client) GetPolicy(ctx context.Context, name string) (StoredPolicy, error) {
	return c.policy(ctx, "reading", name, call{method: "GET"})
}

// PutPolicy creates or replaces the policy p.Name, and returns what is stored: p with its defaults
// filled in. It is in force everywhere within 5 s.
//
// With a condition it is not repeated once it may have been done. Errors: [ErrInvalidRequest], with
// every bad field in [Error.Fields]; [ErrPreconditionFailed].
func (c *Client) PutPolicy(ctx context.Context, p Policy, conditions ...Condition) (StoredPolicy, error) {
	return c.policy(ctx, "storing", p.Name, conditional(call{method: "PUT", body: p}, conditions))
}

// DeletePolicy deletes a policy. Errors: [ErrPolicyNotFound], [ErrPreconditionFailed].
func (c *Client) DeletePolicy(ctx context.Context, name string, conditions ...Condition) error {
	_, err := c.policy(ctx, "deleting", name, conditional(call{method: "DELETE"}, conditions))
	return err
}

// conditional adds the conditions. A repetition could fail on what its lost forerunner did.
func conditional(request call, conditions []Condition) call {
	for _, condition := range conditions {
		if request.header == nil {
			request.header = make(map[string]string, len(conditions))
		}
		request.header[condition.header] = condition.value
		request.repeat = unsent
	}
	return request
}

func (c *Client) policy(ctx context.Context, doing, name string, request call) (StoredPolicy, error) {
	request.op = fmt.Sprintf("%s the policy %q", doing, name)
	if err := checkName(request.op, "name", name); err != nil {
		return StoredPolicy{}, err
	}
	var p StoredPolicy
	request.path, request.out = pathTo("v1", "policies", name), &p
	r, err := c.do(ctx, request)
	if err != nil {
		if request.method == http.MethodDelete && r.uncertain && r.status == http.StatusNotFound {
			return p, nil // an attempt whose answer was lost had deleted it
		}
		return StoredPolicy{}, err
	}
	p.ETag = r.header.Get("ETag")
	return p, nil
}

// PolicyPage is one page of a listing. Its policies have no ETag.
type PolicyPage struct {
	Policies []StoredPolicy `json:"policies"`
	// NextCursor asks for the next page; "" on the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ListPoliciesPage reads one page: up to limit (1 to 100; 0 is the API's default), from a cursor
// ("" for the start).
func (c *Client) ListPoliciesPage(ctx context.Context, limit int, cursor string) (PolicyPage, error) {
	query := url.Values{}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var p PolicyPage
	_, err := c.do(ctx, call{op: "listing the policies", method: "GET", path: pathTo("v1", "policies"), query: query,
		out: &p})
	return p, err
}

// ListPolicies reads all policies, page by page. It ends after the first error.
func (c *Client) ListPolicies(ctx context.Context) iter.Seq2[StoredPolicy, error] {
	return func(yield func(StoredPolicy, error) bool) {
		for cursor := ""; ; {
			page, err := c.ListPoliciesPage(ctx, 0, cursor)
			if err != nil {
				yield(StoredPolicy{}, err)
				return
			}
			for _, p := range page.Policies {
				if !yield(p, nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				return
			}
		}
	}
}
