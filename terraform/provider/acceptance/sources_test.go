package acceptance

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestPolicyDataSource(t *testing.T) {
	t.Parallel()
	t.Run("reads a policy that exists", func(t *testing.T) {
		n := name("data-read")
		removeLater(t, n)
		put(t, elsewhere(n, 77))
		const source = "data.sluice_limiter_policy.p"
		run(t, resource.TestStep{
			Config: fmt.Sprintf(`data "sluice_limiter_policy" "p" { name = %q }`, n),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(source, tfjsonpath.New("version"), knownvalue.Int64Exact(1)),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("etag"),
					knownvalue.StringRegexp(regexp.MustCompile(`^"1-`))),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("rules").AtSliceIndex(0),
					knownvalue.ObjectExact(map[string]knownvalue.Check{
						"name": knownvalue.StringExact("daily"), "algorithm": knownvalue.StringExact("sliding_window"),
						"limit":  knownvalue.Int64Exact(77),
						"window": knownvalue.StringExact("1d"), "burst": knownvalue.Null(),
					})),
			},
		}, resource.TestStep{
			Config:      fmt.Sprintf(`data "sluice_limiter_policy" "p" { name = %q }`, name("nowhere")),
			ExpectError: regexp.MustCompile(`The policy does not exist`),
		})
	})
}

func TestPoliciesDataSource(t *testing.T) {
	t.Parallel()
	t.Run("lists policies by prefix over several pages", func(t *testing.T) {
		prefix := name("data-list")
		const count = 23 // more than one page of the API: a page holds 20 policies
		for i := range count {
			n := fmt.Sprintf("%s-%02d", prefix, i)
			put(t, elsewhere(n, int64(i+1)))
			removeLater(t, n)
		}
		const source = "data.sluice_limiter_policies.p"
		at := tfjsonpath.New("policies")
		run(t, resource.TestStep{
			Config: fmt.Sprintf(`data "sluice_limiter_policies" "p" { name_prefix = %q }`, prefix),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(source, at, knownvalue.ListSizeExact(count)),
				statecheck.ExpectKnownValue(source, at.AtSliceIndex(0).AtMapKey("name"),
					knownvalue.StringExact(prefix+"-00")),
				statecheck.ExpectKnownValue(source,
					at.AtSliceIndex(count-1).AtMapKey("rules").AtSliceIndex(0).AtMapKey("limit"),
					knownvalue.Int64Exact(count)),
			},
		}, resource.TestStep{
			Config: fmt.Sprintf(`data "sluice_limiter_policies" "p" { name_prefix = %q }`, name("nobody")),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(source, at,
				knownvalue.ListSizeExact(0))},
		})
	})
}

func TestDecisionDataSource(t *testing.T) {
	t.Parallel()
	t.Run("charges nothing", func(t *testing.T) {
		n, key := name("data-peek"), name("key")
		removeLater(t, n)
		put(t, elsewhere(n, 2))
		const source = "data.sluice_limiter_decision.p"
		config := fmt.Sprintf("data \"sluice_limiter_decision\" \"p\" {\n policy = %q\n key = %q\n}", n, key)
		expect := func(allowed bool, remaining int64, violated knownvalue.Check) []statecheck.StateCheck {
			return []statecheck.StateCheck{
				statecheck.ExpectKnownValue(source, tfjsonpath.New("allowed"), knownvalue.Bool(allowed)),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("remaining"), knownvalue.Int64Exact(remaining)),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("violated"), violated),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("degraded"), knownvalue.Bool(false)),
				statecheck.ExpectKnownValue(source, tfjsonpath.New("rules").AtSliceIndex(0).AtMapKey("remaining"),
					knownvalue.Int64Exact(remaining)),
			}
		}
		charge := func() {
			_, err := connect(t).Check(t.Context(), client.Check{Policy: n, Key: key})
			require.NoError(t, err)
		}
		run(
			t,
			resource.TestStep{Config: config, ConfigStateChecks: expect(true, 2, knownvalue.Null())},
			resource.TestStep{Config: config, ConfigStateChecks: expect(true, 2, knownvalue.Null())},
			resource.TestStep{PreConfig: charge, Config: config, ConfigStateChecks: expect(true, 1, knownvalue.Null())},
			resource.TestStep{PreConfig: charge, Config: config,
				ConfigStateChecks: expect(false, 0, knownvalue.StringExact("daily"))},
		)
	})

	t.Run("reports a policy that does not exist", func(t *testing.T) {
		run(t, resource.TestStep{
			Config: fmt.Sprintf("data \"sluice_limiter_decision\" \"p\" {\n policy = %q\n key = \"k\"\n}",
				name("nowhere")),
			ExpectError: regexp.MustCompile(`no policy`),
		})
	})
}
