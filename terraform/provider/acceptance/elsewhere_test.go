package acceptance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// elsewhere returns a policy that a test stores without Terraform.
func elsewhere(name string, limit int64) client.Policy {
	return client.Policy{Name: name, Rules: []client.Rule{{
		Name: "daily", Algorithm: client.AlgorithmSlidingWindow, Limit: limit, Window: 24 * time.Hour,
	}}}
}

// put stores the policy without Terraform.
func put(t *testing.T, p client.Policy) {
	t.Helper()
	_, err := connect(t).PutPolicy(t.Context(), p)
	require.NoError(t, err)
}

// removeLater deletes the policy when the test ends.
func removeLater(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, connect(t).DeletePolicy(context.Background(), name)) })
}

// stored returns a test check that reads the stored policy and passes it to check.
func stored(t *testing.T, name string, check func(client.StoredPolicy)) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		p, err := connect(t).GetPolicy(t.Context(), name)
		if err == nil {
			check(p)
		}
		return err
	}
}

// missing returns a test check that the policy does not exist.
func missing(t *testing.T, name string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		if _, err := connect(t).GetPolicy(t.Context(), name); !errors.Is(err, client.ErrPolicyNotFound) {
			return fmt.Errorf("the policy %s exists: %w", name, err)
		}
		return nil
	}
}

func TestPolicyChangedElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("replaces an existing policy only with overwrite", func(t *testing.T) {
		n := name("taken")
		put(t, elsewhere(n, 77))
		run(
			t,
			resource.TestStep{Config: simple(n, 5, ""), ExpectError: regexp.MustCompile(`The policy already exists`)},
			resource.TestStep{
				PreConfig: func() {
					require.NoError(t, stored(t, n, func(p client.StoredPolicy) {
						require.Equal(t, int64(77), p.Rules[0].Limit)
					})(nil))
				},
				Config: simple(n, 5, "overwrite = true"), Check: stored(t, n, func(p client.StoredPolicy) {
					require.Equal(t, int64(5), p.Rules[0].Limit)
				}),
			},
		)
	})

	t.Run("plans to restore a changed policy", func(t *testing.T) {
		n := name("drift")
		run(
			t,
			resource.TestStep{Config: simple(n, 5, "")},
			resource.TestStep{
				PreConfig: func() {
					put(t, elsewhere(n, 500))
				}, Config: simple(n, 5, ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: stored(t, n, func(p client.StoredPolicy) {
					require.Equal(t, int64(5), p.Rules[0].Limit)
					require.Equal(t, int64(3), p.Version)
				}),
			},
			resource.TestStep{
				PreConfig: func() {
					p := elsewhere(n, 5)
					p.Overrides = []client.Override{{Key: "vip", Mode: client.PolicyAllow}}
					put(t, p)
				},
				Config: simple(n, 5, ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: stored(t, n, func(p client.StoredPolicy) { require.Empty(t, p.Overrides) }),
			},
		)
	})

	// If a provider treats 404 as an error, every plan fails after somebody deletes the object
	// manually.
	t.Run("plans to create a deleted policy again", func(t *testing.T) {
		n := name("deleted")
		run(
			t,
			resource.TestStep{Config: simple(n, 5, "")},
			resource.TestStep{
				PreConfig: func() { require.NoError(t, connect(t).DeletePolicy(t.Context(), n)) },
				Config:    simple(n, 5, ""), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
				Check: stored(t, n, func(p client.StoredPolicy) { require.Equal(t, int64(5), p.Rules[0].Limit) }),
			},
		)
	})

	t.Run("reports a conflict with a change after the plan", func(t *testing.T) {
		n := name("conflict")
		f := newFront(t)
		once := func(method string) { f.before(method, func() { put(t, elsewhere(n, 99)) }) }
		t.Parallel()
		runAs(
			t, environment("SLUICE_ENDPOINT", f.url),
			resource.TestStep{Config: simple(n, 5, "")},
			resource.TestStep{
				PreConfig: func() {
					once("PUT")
				}, Config: simple(n, 6, ""), ExpectError: regexp.MustCompile(`The policy was changed elsewhere`),
			},
			resource.TestStep{
				PreConfig: func() {
					require.NoError(t, stored(t, n, func(p client.StoredPolicy) {
						require.Equal(t, int64(99), p.Rules[0].Limit)
					})(nil))
				},
				Config: simple(n, 6, ""), Check: stored(t, n, func(p client.StoredPolicy) {
					require.Equal(t, int64(6), p.Rules[0].Limit)
				}),
			},
			resource.TestStep{
				PreConfig: func() {
					once("DELETE")
				}, Config: simple(n, 6, ""), Destroy: true,
				ExpectError: regexp.MustCompile(`The policy was changed elsewhere`),
			},
			resource.TestStep{Config: simple(n, 6, ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
		)
	})
}
