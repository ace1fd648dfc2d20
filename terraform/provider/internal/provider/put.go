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

// skew bounds the difference between the clocks of this machine and of the service.
const skew = time.Minute

// change describes which stored version a write may replace.
type change struct {
	// after is the version to replace. It is 0 for a creation, whose version is not predictable: a
	// deleted policy keeps its number.
	after      int64
	conditions []client.Condition
	// conflict returns the error for conditions that do not hold.
	conflict func(name string) (summary, detail string)
}

// put stores the policy and fills the model from the API's response. A read after the write could
// return an older version.
func (r *policyResource) put(ctx context.Context, m *resourceModel, c change, diags *diag.Diagnostics) bool {
	p, _, invalid := m.expand()
	addInvalid(diags, invalid)
	if diags.HasError() || !connected(r.client, diags) {
		return false
	}
	started, summary := time.Now(), "The policy was not stored"
	stored, err := r.client.PutPolicy(ctx, toClient(p), c.conditions...)
	if err != nil && mayHaveSucceeded(err) {
		now, missed := r.client.GetPolicy(ctx, p.Name)
		switch {
		case missed == nil && c.produced(now, p, started):
			stored, err = now, nil
		case missed != nil && !errors.Is(missed, client.ErrPolicyNotFound):
			summary = "The policy may have been stored"
		}
	}
	switch {
	case errors.Is(err, client.ErrPreconditionFailed):
		diags.AddError(c.conflict(p.Name))
		return false
	case err != nil:
		fail(diags, summary, err)
		return false
	}
	diags.Append(m.store(ctx, stored)...)
	return !diags.HasError()
}

// mayHaveSucceeded reports whether the service may have carried out the call despite the error. put
// then reads the policy: otherwise it could exist without being in the state, and the next apply
// would refuse to replace it.
func mayHaveSucceeded(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == 0 || e.Status >= 500)
}

// produced reports whether the stored policy is the one that this change wrote after it started.
func (c change) produced(now client.StoredPolicy, p policy.Policy, started time.Time) bool {
	if !reflect.DeepEqual(now.Policy, toClient(p)) {
		return false
	}
	if c.after == 0 {
		return now.UpdatedAt.After(started.Add(-skew))
	}
	return now.Version == c.after+1
}

// alreadyExists returns the error for a creation of a policy that exists.
func alreadyExists(name string) (summary, detail string) {
	return "The policy already exists", fmt.Sprintf(
		"This configuration did not create the policy %q. "+
			"Import it with its name as the ID, or set overwrite = true to replace it.", name)
}

// changedElsewhere returns the error for a change of a policy that others changed.
func changedElsewhere(name string) (summary, detail string) {
	return "The policy was changed elsewhere", fmt.Sprintf(
		"The policy %q has changed since Terraform read it, so it was not replaced. "+
			"Plan again to see the changes, then apply.", name)
}
