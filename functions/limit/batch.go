package main

import (
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// resolveAll validates every check before it looks up the first policy.
func (a *api) resolveAll(w http.ResponseWriter, r *http.Request, body batch) ([]ratelimit.Check, error) {
	var f fault.Fields
	if len(body.Checks) < 1 || len(body.Checks) > maxChecks {
		f.Add("checks", "must be 1 to %d", maxChecks)
		return nil, f.Err()
	}
	costs := make([]int64, len(body.Checks))
	for i, c := range body.Checks {
		at := fmt.Sprintf("checks[%d].", i)
		f.CheckName(at+"policy", c.Policy)
		costs[i] = charge{Key: c.Key, Cost: c.Cost}.validate(&f, at)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	checks := make([]ratelimit.Check, len(body.Checks))
	for i, c := range body.Checks {
		var err error
		if checks[i], err = a.find(w, r, c.Policy, c.Key, costs[i]); err != nil {
			return nil, err
		}
	}
	return checks, nil
}
