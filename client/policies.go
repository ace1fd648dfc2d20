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

	// Version starts at 1 and increases by one with every change.
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	// ETag identifies the version, for [IfMatch]. It is "" in a listing.
	ETag string `json:"-"`
}

// Condition makes a change depend on the stored policy.
type Condition struct{ header, value string }

// IfMatch requires that the stored policy still has this [StoredPolicy.ETag]; "*" requires that the
// policy exists. Otherwise the change fails with [ErrPreconditionFailed].
func IfMatch(etag string) Condition { return Condition{"If-Match", etag} }

// IfNoneMatch requires that no policy of this name exists. Otherwise the change fails with
// [ErrPreconditionFailed].
func IfNoneMatch() Condition { return Condition{"If-None-Match", "*"} }

// GetPolicy reads a policy. Errors: [ErrPolicyNotFound].
func (c *Client) GetPolicy(ctx context.Context, name string) (StoredPolicy, error) {
	return c.policy(ctx, "reading", name, call{method: "GET"})
}

// PutPolicy creates or replaces the policy with the name p.Name, and returns the stored policy,
// with its defaults filled in. Every function instance applies it within 5 s.
//
// A change with a condition is retried only if it certainly never reached the API. Errors:
// [ErrInvalidRequest], with every invalid field in [Error.Fields]; [ErrPreconditionFailed].
func (c *Client) PutPolicy(ctx context.Context, p Policy, conditions ...Condition) (StoredPolicy, error) {
	return c.policy(ctx, "storing", p.Name, conditional(call{method: "PUT", body: p}, conditions))
}

// DeletePolicy deletes a policy. Errors: [ErrPolicyNotFound], [ErrPreconditionFailed].
func (c *Client) DeletePolicy(ctx context.Context, name string, conditions ...Condition) error {
	_, err := c.policy(ctx, "deleting", name, conditional(call{method: "DELETE"}, conditions))
	return err
}

// conditional adds conditions to a request. With a condition, the request is retried only if it
// never reached the API: if the first attempt has changed the policy, the condition of a retry
// fails.
func conditional(request call, conditions []Condition) call {
	if len(conditions) == 0 {
		return request
	}
	request.retry = retryUnsent
	request.header = make(map[string]string, len(conditions))
	for _, condition := range conditions {
		request.header[condition.header] = condition.value
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
			return StoredPolicy{}, nil // an earlier attempt, whose answer was lost, deleted it
		}
		return StoredPolicy{}, err
	}
	p.ETag = r.header.Get("ETag")
	return p, nil
}

// ListPoliciesOptions selects one page of policies.
type ListPoliciesOptions struct {
	// Limit is the size of the page: 1 to 100. Zero means the API's default.
	Limit int
	// Cursor is the NextCursor of the previous page. Empty starts with the first page.
	Cursor string
}

// PolicyPage is one page of policies. The policies of a page have no ETag.
type PolicyPage struct {
	Policies []StoredPolicy `json:"policies"`
	// NextCursor is the cursor of the next page; "" on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ListPoliciesPage reads one page of policies. Errors: [ErrInvalidRequest].
func (c *Client) ListPoliciesPage(ctx context.Context, o ListPoliciesOptions) (PolicyPage, error) {
	query := url.Values{}
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Cursor != "" {
		query.Set("cursor", o.Cursor)
	}
	var p PolicyPage
	_, err := c.do(ctx, call{
		op: "listing the policies", method: "GET", path: pathTo("v1", "policies"), query: query, out: &p,
	})
	return p, err
}

// ListPolicies returns an iterator over all policies. It reads them page by page. An error ends the
// iteration.
func (c *Client) ListPolicies(ctx context.Context) iter.Seq2[StoredPolicy, error] {
	return func(yield func(StoredPolicy, error) bool) {
		var o ListPoliciesOptions
		for {
			page, err := c.ListPoliciesPage(ctx, o)
			if err != nil {
				yield(StoredPolicy{}, err)
				return
			}
			for _, p := range page.Policies {
				if !yield(p, nil) {
					return
				}
			}
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				return
			}
		}
	}
}
