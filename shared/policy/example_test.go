package policy_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// Policy.For uses the override whose key is equal to the given key. Otherwise it uses the override
// with the longest matching prefix, and if none matches, the policy's own settings.
func ExamplePolicy_For() {
	hourly := func(limit int64) []policy.Rule {
		return []policy.Rule{{Name: "hourly", Algorithm: policy.SlidingWindow, Limit: limit, Window: time.Hour}}
	}
	p := policy.Policy{
		Name:  "export",
		Rules: hourly(500),
		Overrides: []policy.Override{
			{Key: "bot-*", Mode: policy.Deny},
			{Key: "bot-search-*", Rules: hourly(50)},
			{Key: "bot-search-ours", Mode: policy.Allow},
		},
	}

	for _, key := range []string{"tenant-7", "bot-1", "bot-search-1", "bot-search-ours"} {
		settings := p.For(key)
		fmt.Println(key, settings.Mode, settings.Rules[0].Limit)
	}
	// Output:
	// tenant-7 enforce 500
	// bot-1 deny 500
	// bot-search-1 enforce 50
	// bot-search-ours allow 500
}

// Normalize fills in the defaults. If the policy is invalid, the error names every invalid field.
func ExamplePolicy_Normalize() {
	_, err := policy.Policy{
		Name:       "export",
		LocalShare: 2,
		Rules:      []policy.Rule{{Name: "hourly", Algorithm: policy.FixedWindow, Limit: 500}},
	}.Normalize()

	if invalid, ok := errors.AsType[*fault.Error](err); ok {
		for _, field := range invalid.Fields {
			fmt.Println(field.Field, field.Message)
		}
	}
	// Output:
	// local_share must be over 0 and at most 1
	// rules[0].window_ms must be a whole number of milliseconds, 1 to 31622400000 (366 days)
}
