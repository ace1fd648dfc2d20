package ratelimit

import "github.com/sluicehq/sluice/shared/fault"

// Errors of this package, for [errors.Is]. Each matches every [fault.Error] with the same code.
var (
	// ErrInvalid means that a check has invalid fields; [fault.Error.Fields] names them.
	ErrInvalid = fault.New(fault.InvalidRequest, "the check is invalid")
	// ErrDenied means that a check exceeds a limit. Only [Decision.Err] returns it.
	ErrDenied = fault.New(fault.QuotaExceeded, "the check exceeds a limit")
	// ErrUnavailable means that Redis cannot be reached. Only [Limiter.Reset] returns it: the other
	// methods follow the policy's OnUnavailable.
	ErrUnavailable = fault.New(fault.StoreUnavailable, "redis cannot be reached")
)
