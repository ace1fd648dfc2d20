package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/policy"
)

// change says what a policy may be stored over.
type change struct {
	// after is the version that it follows; 0 is none.
	after int64
	when  []client.Condition
	// refused says why when does not hold.
	refused func(name string) (summary, detail string)
}

// put stores the policy and fills the model with the API's answer: a read right after could be of an older one.
func (r *policyResource) put(ctx context.Context, m *resourceModel, c change, diags *diag.Diagnostics) bool {
	p, _, invalid := m.expand()
	addInvalid(diags, invalid)
	if diags.HasError() || !connected(r.client, diags) {
		return false
	}
	stored, err := r.client.PutPolicy(ctx, p, c.when...)
	if err != nil && r.done(ctx, p, c, err, &stored) {
		err = nil
	}
	switch {
	case errors.Is(err, client.ErrPreconditionFailed):
		diags.AddError(c.refused(p.Name))
		return false
	case err != nil:
		fail(diags, "The policy was not stored", err)
		return false
	}
	diags.Append(m.store(ctx, stored)...)
	return !diags.HasError()
}

// done reports whether a call whose answer was lost was carried out, and what is stored then. Else the policy would be stored and not in the state, and the
// next apply would find a stranger's.
func (r *policyResource) done(ctx context.Context, p policy.Policy, c change, err error, stored *client.Policy) bool {
	if e, known := errors.AsType[*client.Error](err); !known || (e.Status != 0 && e.Status < 500) {
		return false
	}
	now, err := r.client.GetPolicy(ctx, p.Name)
	if err != nil || now.Version != c.after+1 || !reflect.DeepEqual(now.Policy, p) {
		return false
	}
	*stored = now
	return true
}

func existsAlready(name string) (summary, detail string) {
	return "The policy exists already", fmt.Sprintf(
		"There is a policy %q that this configuration did not make. Import it under that id, or set overwrite = true to replace it.", name)
}

func changedElsewhere(name string) (summary, detail string) {
	return "The policy was changed elsewhere", fmt.Sprintf(
		"The policy %q is no longer the one that was read, so it was left as it is. Plan again to see what changed, and apply that.", name)
}
