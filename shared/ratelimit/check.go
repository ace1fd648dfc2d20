package ratelimit

import (
	"fmt"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// Defaults and maximums of a check.
const (
	DefaultCost = 1
	MaxCost     = 10_000
	MaxChecks   = 20 // in one CheckAll call
)

// Request is a check as a caller sends it: with the name of a policy and an optional cost.
type Request struct {
	Policy string
	Key    string // 1 to [policy.MaxKey] bytes of UTF-8
	Cost   *int64 // 1 to [MaxCost]; nil means [DefaultCost]
}

// Validate reports every invalid field. Errors: [ErrInvalid], with the fields "policy", "key" and
// "cost".
func (r Request) Validate() error {
	return r.invalid().Err()
}

// ValidateAll reports every invalid field of the requests. There must be 1 to [MaxChecks] requests.
// Errors: [ErrInvalid], with fields such as "checks" and "checks[2].key".
func ValidateAll(requests []Request) error {
	return validateAll(len(requests), func(i int) fault.Fields { return requests[i].invalid() })
}

func (r Request) invalid() (f fault.Fields) {
	checkTarget(&f, r.Policy, r.Key)
	if r.Cost != nil {
		checkCost(&f, *r.Cost)
	}

	return f
}

// Under returns the check that r requests. p must be the policy that r names.
func (r Request) Under(p policy.Policy) Check {
	c := Check{Policy: p, Key: r.Key, Cost: DefaultCost}
	if r.Cost != nil {
		c.Cost = *r.Cost
	}

	return c
}

// Check describes a charge to one key under a policy.
type Check struct {
	// Policy needs a name and rules; its other fields have defaults. The limiter applies its
	// overrides.
	Policy policy.Policy
	Key    string // 1 to [policy.MaxKey] bytes of UTF-8
	Cost   int64  // 1 to [MaxCost]; 0 means [DefaultCost]
}

// charge is a check with the settings that apply to its key.
type charge struct {
	policy, key string
	cost        int64
	policy.Settings
}

func (c *Check) charge() charge {
	cost := c.Cost
	if cost == 0 {
		cost = DefaultCost
	}

	return charge{policy: c.Policy.Name, key: c.Key, cost: cost, Settings: c.Policy.For(c.Key)}
}

// invalid returns the invalid fields. It runs on every check and allocates nothing if c is valid.
func (c *charge) invalid() (f fault.Fields) {
	checkTarget(&f, c.policy, c.key)
	checkCost(&f, c.cost)
	c.Validate(&f)

	return f
}

func checkTarget(f *fault.Fields, policyName, key string) {
	f.CheckName("policy", policyName)
	policy.CheckKey(f, "key", key)
}

func checkCost(f *fault.Fields, cost int64) {
	if cost < 1 || cost > MaxCost {
		f.Add("cost", "must be 1 to %d", MaxCost)
	}
}

// validateAll validates the n checks of a call. It names fields by index, such as "checks[2].key".
func validateAll(n int, invalid func(i int) fault.Fields) error {
	if n < 1 || n > MaxChecks {
		return fault.Invalid("checks", "must have 1 to %d entries", MaxChecks)
	}

	var f fault.Fields
	for i := range n {
		for _, field := range invalid(i) {
			f.Add(fmt.Sprintf("checks[%d].%s", i, field.Field), "%s", field.Message)
		}
	}

	return f.Err()
}
