package policy

import "github.com/sluicehq/sluice/shared/fault"

// Errors of this package and its stores, for [errors.Is]. Each matches every [fault.Error] with the
// same code.
var (
	// ErrInvalid means that a policy or a key has invalid fields; [fault.Error.Fields] names them.
	ErrInvalid = fault.New(fault.InvalidRequest, "the policy is invalid")
	// ErrNotFound means that no policy has this name.
	ErrNotFound = fault.New(fault.PolicyNotFound, "no policy has this name")
	// ErrPreconditionFailed means that the stored policy does not meet the condition of a write.
	ErrPreconditionFailed = fault.New(fault.PreconditionFailed, "the stored policy does not meet the condition")
	// ErrUnavailable means that the policy store cannot be reached.
	ErrUnavailable = fault.New(fault.StoreUnavailable, "the policy store cannot be reached")
)
