package acceptance

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

const address = "sluice_limiter_policy.p"

// simple returns the configuration of a policy with one rule and further arguments.
func simple(name string, limit int, further string) string {
	return fmt.Sprintf(`
resource "sluice_limiter_policy" "p" {
  name  = %q
  rules = [{ name = "daily", algorithm = "sliding_window", limit = %d, window = "1d" }]
  %s
}`, name, limit, further)
}

// full returns the configuration of a policy with every argument.
func full(name string) string {
	return fmt.Sprintf(`
resource "sluice_limiter_policy" "p" {
  name           = %q
  description    = "Limits guessing: \"few\" in a row, {\"a\" :  1}, few a day\nüber"
  mode           = "shadow"
  on_unavailable = "deny"
  local_share    = 0.3
  no_deny_cache  = true
  rules = [
    { name = "burst", algorithm = "token_bucket", limit = 5, window = "1m", burst = 20 },
    { name = "daily", algorithm = "sliding_window", limit = 50, window = "1d" },
  ]
  overrides = [
    { key = "zebra", mode = "allow" },
    { key = "bot-*", mode = "deny", rules = [{ name = "none", algorithm = "gcra", limit = 1, window = "1h30m" }] },
    { key = "apple", rules = [{ name = "hourly", algorithm = "fixed_window", limit = 7, window = "1s500ms" }] },
  ]
}`, name)
}

// fullPolicy returns the policy that full declares.
func fullPolicy(name string) client.Policy {
	return client.Policy{
		Name: name, Description: "Limits guessing: \"few\" in a row, {\"a\" :  1}, few a day\nüber",
		Mode: client.PolicyShadow, OnUnavailable: client.OnUnavailableDeny, LocalShare: 0.3, NoDenyCache: true,
		Rules: []client.Rule{
			{Name: "burst", Algorithm: client.AlgorithmTokenBucket, Limit: 5, Window: time.Minute, Burst: 20},
			{Name: "daily", Algorithm: client.AlgorithmSlidingWindow, Limit: 50, Window: 24 * time.Hour},
		},
		Overrides: []client.Override{
			{Key: "zebra", Mode: client.PolicyAllow},
			{Key: "bot-*", Mode: client.PolicyDeny, Rules: []client.Rule{
				{Name: "none", Algorithm: client.AlgorithmGCRA, Limit: 1, Window: 90 * time.Minute},
			}},
			{Key: "apple", Rules: []client.Rule{
				{Name: "hourly", Algorithm: client.AlgorithmFixedWindow, Limit: 7, Window: 1500 * time.Millisecond},
			}},
		},
	}
}

// noChange returns a check that the plan has no changes.
func noChange() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// planned returns a check that the plan has the action for the policy.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	t.Run("is created, changed in place, renamed and deleted", func(t *testing.T) {
		first, second := name("made"), name("renamed")
		run(
			t,
			resource.TestStep{
				Config: simple(first, 5, ""),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(address, tfjsonpath.New("version"), knownvalue.Int64Exact(1)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("mode"), knownvalue.StringExact("enforce")),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("on_unavailable"),
						knownvalue.StringExact("local")),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("local_share"), knownvalue.Float64Exact(0.1)),
					statecheck.ExpectIdentityValueMatchesState(address, tfjsonpath.New("name")),
				},
			},
			resource.TestStep{Config: simple(first, 5, ""), ConfigPlanChecks: noChange()},
			resource.TestStep{
				Config: simple(first, 6, `mode = "shadow"`), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(address, tfjsonpath.New("version"), knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("rules").AtSliceIndex(0).AtMapKey("limit"),
						knownvalue.Int64Exact(6)),
				},
				Check: stored(t, first, func(p client.StoredPolicy) {
					require.Equal(t, int64(6), p.Rules[0].Limit)
					require.Equal(t, client.PolicyShadow, p.Mode)
				}),
			},
			resource.TestStep{Config: simple(second, 6, ""), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
				Check: missing(t, first)},
		)
	})

	t.Run("stores every argument as written", func(t *testing.T) {
		n := name("full")
		run(t,
			resource.TestStep{Config: full(n), Check: stored(t, n, func(p client.StoredPolicy) {
				require.Equal(t, fullPolicy(n), p.Policy)
			})},
			resource.TestStep{Config: full(n), ConfigPlanChecks: noChange()},
		)
	})

	t.Run("shows no change for a different notation of a duration", func(t *testing.T) {
		n := name("forms")
		with := func(window string) string {
			return fmt.Sprintf(`
resource "sluice_limiter_policy" "p" {
  name      = %q
  rules     = [{ name = "hourly", algorithm = "gcra", limit = 5, window = %q }]
  overrides = [{ key = "a", rules = [{ name = "hourly", algorithm = "gcra", limit = 6, window = %q }] }]
}`, n, window, window)
		}
		run(
			t,
			resource.TestStep{Config: with("60m")},
			resource.TestStep{Config: with("60m"), ConfigPlanChecks: noChange()},
			resource.TestStep{Config: with("1h"), ConfigPlanChecks: noChange()},
			resource.TestStep{Config: with("3600s"), ConfigPlanChecks: noChange()},
			resource.TestStep{Config: with("61m"), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
		)
	})

	// If the API reorders a list and the provider does not restore the order, every plan has
	// changes.
	t.Run("keeps the order of overrides", func(t *testing.T) {
		n := name("order")
		with := func(first, second string) string {
			return simple(n, 5,
				fmt.Sprintf(`overrides = [
    { key = %q, mode = "deny" }, { key = "m", mode = "shadow" }, { key = %q, mode = "allow" },
  ]`, first, second))
		}
		keys := func(want ...string) func(client.StoredPolicy) {
			return func(p client.StoredPolicy) {
				for i, o := range p.Overrides {
					require.Equal(t, want[i], o.Key)
				}
			}
		}
		run(
			t,
			resource.TestStep{Config: with("z", "a"), Check: stored(t, n, keys("z", "m", "a"))},
			resource.TestStep{Config: with("z", "a"), ConfigPlanChecks: noChange()},
			resource.TestStep{Config: with("a", "z"), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: stored(t, n, keys("a", "m", "z"))},
		)
	})

	// If the API returns null for an empty list, Terraform reports an inconsistent result after
	// apply.
	t.Run("keeps an empty list of overrides", func(t *testing.T) {
		n := name("empty")
		run(
			t,
			resource.TestStep{Config: simple(n, 5, "overrides = []")},
			resource.TestStep{Config: simple(n, 5, "overrides = []"), ConfigPlanChecks: noChange()},
			resource.TestStep{Config: simple(n, 5, ""), Check: stored(t, n, func(p client.StoredPolicy) {
				require.Equal(t, int64(1), p.Version, "null instead of [] must not change the policy")
			})},
			resource.TestStep{Config: simple(n, 5, `overrides = [{ key = "a", mode = "deny" }]`),
				Check: stored(t, n, func(p client.StoredPolicy) {
					require.Len(t, p.Overrides, 1)
				})},
			resource.TestStep{Config: simple(n, 5, "overrides = []"), Check: stored(t, n, func(p client.StoredPolicy) {
				require.Empty(t, p.Overrides)
			})},
			resource.TestStep{Config: simple(n, 5, "overrides = []"), ConfigPlanChecks: noChange()},
		)
	})

	// If the plan keeps the state's value of an attribute that the apply changes, Terraform reports
	// an inconsistent result.
	t.Run("plans unknown values for the version and its time", func(t *testing.T) {
		n := name("stamps")
		unknown := planned(plancheck.ResourceActionUpdate)
		for _, attribute := range []string{"version", "etag", "updated_at"} {
			check := plancheck.ExpectUnknownValue(address, tfjsonpath.New(attribute))
			unknown.PreApply = append(unknown.PreApply, check)
		}
		run(
			t,
			resource.TestStep{Config: simple(n, 5, "")},
			resource.TestStep{Config: simple(n, 6, ""), ConfigPlanChecks: unknown},
			resource.TestStep{
				Config: simple(n, 6, "overwrite = true"),
				Check: stored(t, n, func(p client.StoredPolicy) {
					require.Equal(t, int64(2), p.Version, "a change of overwrite alone must not change the policy")
				}),
			},
		)
	})
}

func TestImport(t *testing.T) {
	t.Parallel()
	// If an import leaves attributes empty, the next apply replaces the object.
	t.Run("fills in every attribute by name or identity", func(t *testing.T) {
		n := name("imported")
		steps := []resource.TestStep{{Config: full(n)}}
		steps = append(steps, resource.TestStep{
			ResourceName: address, ImportState: true, ImportStateId: n, ImportStateVerify: true,
			ImportStateVerifyIdentifierAttribute: "name",
		})
		for _, kind := range []resource.ImportStateKind{resource.ImportBlockWithID,
			resource.ImportBlockWithResourceIdentity} {
			step := resource.TestStep{Config: full(n), ResourceName: address, ImportState: true, ImportStateKind: kind}
			if kind == resource.ImportBlockWithID {
				step.ImportStateId = n
			}
			steps = append(steps, step)
		}
		run(t, steps...)
	})

	t.Run("reports a policy that does not exist", func(t *testing.T) {
		n := name("nothing")
		run(t, resource.TestStep{
			Config: simple(n, 1, ""), ResourceName: address, ImportState: true, ImportStateId: n,
			ExpectError: regexp.MustCompile(`(?i)cannot import non-existent`),
		}, resource.TestStep{
			Config: simple(n, 1, ""), ResourceName: address, ImportState: true, ImportStateId: "no/name",
			ExpectError: regexp.MustCompile(`name must`),
		})
	})
}
