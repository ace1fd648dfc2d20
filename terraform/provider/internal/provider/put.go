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

// skew is the maximum permitted difference between this machine's clock and the service's clock.
const skew = time.Minute

// change describes which stored version a write may replace.
type change struct {
	// after is the version to replace, or 0 for a creation. The version of a created policy is not
	// predictable: it continues after the last version of a deleted policy with the same name.
	after      int64
	conditions []client.Condition
	// conflict returns the error to report if the stored version does not satisfy the conditions.
	conflict func(name string) (summary, detail string)
}

// put stores the policy, fills the model from the API's response and returns whether it succeeded.
// It does not read the policy after a successful write: the read could return an older version.
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

// mayHaveSucceeded reports whether the service may have stored the policy despite the error. In
// this case, put reads the policy to find out. Without this read, a created policy could be missing
// from the state. The next apply would then fail, because the provider does not replace an existing
// policy.
func mayHaveSucceeded(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == 0 || e.Status >= 500)
}

// produced reports whether this change wrote the stored policy. The argument now is the stored
// policy after the write, p is the policy that put tried to write, and started is the time before
// the write.
func (c change) produced(now client.StoredPolicy, p policy.Policy, started time.Time) bool {
	if !reflect.DeepEqual(now.Policy, toClient(p)) {
		return false
	}
	if c.after == 0 {
		return now.UpdatedAt.After(started.Add(-skew))
	}
	return now.Version == c.after+1
}

// alreadyExists returns the error for the creation of a policy that already exists.
func alreadyExists(name string) (summary, detail string) {
	return "The policy already exists", fmt.Sprintf(
		"This configuration did not create the policy %q. "+
			"Import it with its name as the ID, or set overwrite = true to replace it.", name)
}

// changedElsewhere returns the error for a policy that has changed since Terraform read it.
func changedElsewhere(name string) (summary, detail string) {
	return "The policy was changed elsewhere", fmt.Sprintf(
		"The policy %q has changed since Terraform read it, so it was not replaced. "+
			"Plan again to see the changes, then apply.", name)
}
