package acceptance

import (
	"context"
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestLostResponse(t *testing.T) {
	t.Parallel()
	// If a provider makes further calls before it writes the state, a failure of these calls leaves
	// an object that is not in the state.
	t.Run("stores a created policy in the state", func(t *testing.T) {
		n, first := name("lost"), int64(0)
		f := newFront(t)
		t.Parallel()
		runAs(
			t, environment("SLUICE_ENDPOINT", f.url),
			resource.TestStep{
				PreConfig: func() {
					put(t, elsewhere(n, 77)) // a new policy with this name continues from the deleted policy's version
					require.NoError(t, connect(t).DeletePolicy(context.Background(), n))
					f.lose(http.MethodPut)
				},
				Config: simple(n, 5, ""), Check: stored(t, n, func(p client.StoredPolicy) { first = p.Version }),
			},
			resource.TestStep{
				PreConfig: func() { f.lose(http.MethodPut) }, Config: simple(n, 6, ""),
				Check: stored(t, n, func(p client.StoredPolicy) { require.Equal(t, first+1, p.Version) }),
			},
			resource.TestStep{Config: simple(n, 6, ""), ConfigPlanChecks: noChange()},
			resource.TestStep{PreConfig: func() { f.lose(http.MethodDelete) }, Config: simple(n, 6, ""), Destroy: true},
		)
		require.Equal(t, 2, f.count(http.MethodPut), "the provider must not repeat a PUT")
	})

	t.Run("does not adopt a policy that another writer stored", func(t *testing.T) {
		n := name("stranger")
		f := newFront(t)
		t.Parallel()
		runAs(t, environment("SLUICE_ENDPOINT", f.url), resource.TestStep{
			PreConfig: func() {
				f.before(http.MethodPut, func() { put(t, elsewhere(n, 99)) })
				f.lose(http.MethodPut)
			},
			Config: simple(n, 5, ""), ExpectError: regexp.MustCompile(`The policy was not stored`),
		})
		require.NoError(t, stored(t, n, func(p client.StoredPolicy) {
			require.Equal(t, int64(99), p.Rules[0].Limit)
		})(nil))
	})

	t.Run("reports that the policy may have been stored", func(t *testing.T) {
		n := name("limbo")
		f := newFront(t)
		t.Parallel()
		runAs(
			t, environment("SLUICE_ENDPOINT", f.url, "SLUICE_RETRIES", "0"),
			resource.TestStep{
				PreConfig: func() {
					f.lose(http.MethodPut)
					f.refuse(http.MethodGet, http.StatusBadGateway)
				}, Config: simple(n, 5, ""),
				ExpectError: regexp.MustCompile(`The policy may have been stored`),
			},
			resource.TestStep{PreConfig: func() {
				f.refuse(http.MethodGet, 0)
			}, Config: simple(n, 5, ""), ExpectError: regexp.MustCompile(`The policy already exists`)},
			resource.TestStep{Config: simple(n, 5, "overwrite = true")},
		)
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	// If a provider reads an object directly after the creation, the read can return 404, and the
	// provider assumes a deletion.
	t.Run("fills the state without a read after the creation", func(t *testing.T) {
		n := name("answer")
		f := newFront(t)
		w := workspace(t, "SLUICE_ENDPOINT="+f.url)
		t.Parallel()
		f.refuse(http.MethodGet, http.StatusNotFound)
		apply(t, w, simple(n, 5, ""))
		f.refuse(http.MethodGet, 0)
		out, err := w.Run(t.Context(), "plan", "-no-color", "-detailed-exitcode", "-input=false")
		require.NoError(t, err, "the plan after the apply must have no changes")
		require.Contains(t, out, "No changes")
		destroy(t, w)
	})

	t.Run("keeps the state while the store is unavailable", func(t *testing.T) {
		n := name("unavailable")
		f := newFront(t)
		t.Parallel()
		runAs(
			t, environment("SLUICE_ENDPOINT", f.url, "SLUICE_RETRIES", "0"),
			resource.TestStep{Config: simple(n, 5, "")},
			resource.TestStep{
				PreConfig: func() { f.refuse(http.MethodGet, http.StatusServiceUnavailable) }, Config: simple(n, 5, ""),
				ExpectError: regexp.MustCompile(`The policy was not read`),
			},
			resource.TestStep{PreConfig: func() {
				f.refuse(http.MethodGet, 0)
			}, Config: simple(n, 5, ""), ConfigPlanChecks: noChange()},
		)
	})
}
