package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	firstLimit, secondLimit = 3, 6

	// inForce is the guaranteed maximum time until every process uses a changed policy.
	inForce = 5 * time.Second
	// inARow is the number of consecutive answers that must use the new policy. Several are needed
	// because each process has its own cache.
	inARow = 12
)

// showPolicies declares a limit in HCL and changes it. If neither OpenTofu nor Terraform is
// installed, it uses the sluice command line instead.
func showPolicies(ctx context.Context, s *scenario) error {
	declare := s.declare
	if s.Tofu == nil {
		s.note("neither tofu nor terraform is installed (`make tofu` builds OpenTofu): using the command line")
		declare = s.putPolicy
	}
	if err := declare(ctx, firstLimit); err != nil {
		return err
	}
	key := s.id("customer-7")
	allowed := 0
	for range firstLimit + 1 {
		a, err := s.call(ctx, http.MethodPost, "/v1/limits/exports/check", object{"key": key})
		if err != nil {
			return err
		}
		if a.status == http.StatusOK {
			allowed++
		}
	}
	if err := s.check(allowed == firstLimit, "of the next %d requests, %d are allowed and one is denied",
		firstLimit+1, allowed); err != nil {
		return err
	}
	if err := declare(ctx, secondLimit); err != nil {
		return err
	}
	took, err := s.awaitLimit(ctx, key)
	if err != nil {
		return err
	}
	if err := s.check(took <= inForce,
		"%d consecutive answers use the new limit, the first %s after the change; guaranteed: %s", inARow, millis(took),
		inForce); err != nil {
		return err
	}
	if s.Tofu == nil {
		return nil
	}
	return s.refuseAtPlanTime(ctx)
}

// declare writes the policy in HCL and applies it.
func (s *scenario) declare(ctx context.Context, limit int) error {
	if err := s.Tofu.Write(hcl(limit)); err != nil {
		return err
	}
	out, err := s.Tofu.Run(ctx, "apply", "-auto-approve", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	summary := regexp.MustCompile(`Apply complete! Resources: (.*)\.`).FindStringSubmatch(out)
	if summary == nil {
		return fmt.Errorf("the output of the apply has no summary: %s", out)
	}
	return s.check(true, `%s apply of `+"`rules = [provider::sluice::rate(\"%d/h\")]`"+`: %s`, s.ToolName, limit,
		summary[1])
}

func hcl(limit int) string {
	return fmt.Sprintf(`terraform {
  required_providers {
    sluice = { source = "sluicehq/sluice" }
  }
}

resource "sluice_limiter_policy" "exports" {
  name      = "exports"
  rules     = [provider::sluice::rate("%d/h")]
  overwrite = true
}
`, limit)
}

// putPolicy stores the same policy as the method declare, but with the sluice command line.
func (s *scenario) putPolicy(ctx context.Context, limit int) error {
	policy := fmt.Sprintf(`{"rules": [{"name": "per-1h", "algorithm": "gcra", "limit": %d, "window_ms": 3600000}]}`,
		limit)
	if _, err := s.Sluice(ctx, policy, "policies", "put", "exports"); err != nil {
		return err
	}
	return s.check(true, "sluice policies put exports, with a limit of %d", limit)
}

// awaitLimit peeks until inARow consecutive answers use the new limit. It returns the time from the
// change to the first of these answers.
func (s *scenario) awaitLimit(ctx context.Context, key string) (time.Duration, error) {
	changed, first, row := time.Now(), time.Duration(0), 0
	for row < inARow {
		a, err := s.want(ctx, http.StatusOK, http.MethodGet, "/v1/limits/exports?key="+key, nil)
		if err != nil {
			return 0, err
		}
		switch {
		case a.number("limit") != secondLimit:
			row = 0
		case row == 0:
			first, row = time.Since(changed), 1
		default:
			row++
		}
		if time.Since(changed) > 2*inForce {
			return 0, errors.New("the API does not use the changed policy")
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// refuseAtPlanTime shows that a plan finds no drift, and that a plan detects a mistake.
func (s *scenario) refuseAtPlanTime(ctx context.Context) error {
	out, err := s.Tofu.Run(ctx, "plan", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	if err := s.check(strings.Contains(out, "No changes"), "a plan finds no changes"); err != nil {
		return err
	}
	if err := s.Tofu.Write(strings.Replace(hcl(secondLimit), "overwrite = true", `mode      = "off"`, 1)); err != nil {
		return err
	}
	out, err = s.Tofu.Run(ctx, "plan", "-no-color", "-input=false")
	refusal := regexp.MustCompile(`mode must be [^.]*\.`).FindString(strings.Join(strings.Fields(out), " "))
	return s.check(err != nil && refusal != "", "the plan detects a mistake: %s", refusal)
}
