package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/policy"
)

// skew is how far this machine's clock and the service's may be apart when a creation is looked up.
const skew = time.Minute

// change says what a policy may be stored over.
type change struct {
	// after is the version that it follows; 0 is that of a creation, which may follow a deleted
	// one.
	after int64
	when  []client.Condition
	// refused says why when does not hold.
	refused func(name string) (summary, detail string)
}

// put stores the policy and fills the model with the API's answer: a read right after could be of
// an older one.
func (r *policyResource) put(ctx context.Context, m *resourceModel, c change, diags *diag.Diagnostics) bool {
	p, _, invalid := m.expand()
	addInvalid(diags, invalid)
	if diags.HasError() || !connected(r.client, diags) {
		return false
	}
	started, summary := time.Now(), "The policy was not stored"
	stored, err := r.client.PutPolicy(ctx, toClient(p), c.when...)
	if err != nil && unanswered(err) {
		now, missed := r.client.GetPolicy(ctx, p.Name)
		switch {
		case missed == nil && c.made(now, p, started):
			stored, err = now, nil
		case missed != nil && !errors.Is(missed, client.ErrPolicyNotFound):
			summary = "It is not known whether the policy was stored"
		}
	}
	switch {
	case errors.Is(err, client.ErrPreconditionFailed):
		diags.AddError(c.refused(p.Name))
		return false
	case err != nil:
		fail(diags, summary, err)
		return false
	}
	diags.Append(m.store(ctx, stored)...)
	return !diags.HasError()
}

// unanswered reports whether a call may have been carried out in spite of its error. What it may
// have stored is then looked up: else it would be there and not in the state, and the next apply
// would take it for a stranger's.
func unanswered(err error) bool {
	e, known := errors.AsType[*client.Error](err)
	return known && (e.Status == 0 || e.Status >= 500)
}

// made reports whether what is stored now is what this change has stored since it started.
func (c change) made(now client.StoredPolicy, p policy.Policy, started time.Time) bool {
	if !reflect.DeepEqual(now.Policy, toClient(p)) {
		return false
	}
	if c.after == 0 {
		return now.UpdatedAt.After(started.Add(-skew))
	}
	return now.Version == c.after+1
}

func existsAlready(name string) (summary, detail string) {
	return "The policy exists already", fmt.Sprintf(
		"There is a policy %q that this configuration did not make. Import it under that id, or set overwrite = true to replace it.", name)
}

func changedElsewhere(name string) (summary, detail string) {
	return "The policy was changed elsewhere", fmt.Sprintf(
		"The policy %q is no longer the one that was read, so it was left as it is. Plan again to see what changed, and apply that.", name)
}
