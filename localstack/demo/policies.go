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

	// inForce is what is promised for a changed policy.
	inForce = 5 * time.Second
	// inARow is how many answers must be the new policy's, since each of several processes has a
	// cache of its own.
	inARow = 12
)

// playPolicies declares a limit in HCL, and changes it. Without OpenTofu and Terraform it does the
// same with the command line.
func playPolicies(ctx context.Context, s *story) error {
	declare := s.declare
	if s.Tofu == nil {
		s.tell("neither tofu nor terraform is here (`make tofu` builds one), so that this is told with the command line")
		declare = s.putPolicy
	}
	if err := declare(ctx, firstLimit); err != nil {
		return err
	}
	key := s.id("customer-7")
	passed := 0
	for range firstLimit + 1 {
		a, err := s.call(ctx, http.MethodPost, "/v1/limits/exports/check", object{"key": key})
		if err != nil {
			return err
		}
		if a.status == http.StatusOK {
			passed++
		}
	}
	if err := s.check(passed == firstLimit, "the next %d requests are limited by it: %d pass, and one is denied",
		firstLimit+1, passed); err != nil {
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
		"%d in a row were answered by the new limit %s after the change; promised are %s", inARow, millis(took),
		inForce); err != nil {
		return err
	}
	if s.Tofu == nil {
		return nil
	}
	return s.refuseAtPlanTime(ctx)
}

// declare applies the policy in HCL.
func (s *story) declare(ctx context.Context, limit int) error {
	if err := s.Tofu.Write(hcl(limit)); err != nil {
		return err
	}
	out, err := s.Tofu.Run(ctx, "apply", "-auto-approve", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	summary := regexp.MustCompile(`Apply complete! Resources: (.*)\.`).FindStringSubmatch(out)
	if summary == nil {
		return fmt.Errorf("the apply did not say what it did: %s", out)
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

// putPolicy stores the same policy with the command line.
func (s *story) putPolicy(ctx context.Context, limit int) error {
	policy := fmt.Sprintf(`{"rules": [{"name": "per-1h", "algorithm": "gcra", "limit": %d, "window_ms": 3600000}]}`,
		limit)
	if _, err := s.Sluice(ctx, policy, "policies", "put", "exports"); err != nil {
		return err
	}
	return s.check(true, "sluice policies put exports, with a limit of %d", limit)
}

// awaitLimit peeks until many answers in a row are the new limit's, and returns when the first of
// them was there.
func (s *story) awaitLimit(ctx context.Context, key string) (time.Duration, error) {
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
			return 0, errors.New("the changed policy does not come into force")
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// refuseAtPlanTime shows that a mistake never reaches the service, and that nothing is left to do.
func (s *story) refuseAtPlanTime(ctx context.Context) error {
	out, err := s.Tofu.Run(ctx, "plan", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	if err := s.check(strings.Contains(out, "No changes"), "a plan finds nothing left to do"); err != nil {
		return err
	}
	if err := s.Tofu.Write(strings.Replace(hcl(secondLimit), "overwrite = true", `mode      = "off"`, 1)); err != nil {
		return err
	}
	out, err = s.Tofu.Run(ctx, "plan", "-no-color", "-input=false")
	refusal := regexp.MustCompile(`mode must be [^.]*\.`).FindString(strings.Join(strings.Fields(out), " "))
	return s.check(err != nil && refusal != "", "a mistake is found by the plan: %s", refusal)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the demo was stopped: %w", ctx.Err())
	}
}
