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

// A provider that wrote its state only after further calls had succeeded left objects behind that
// it did not know.
func TestAPolicyWhoseCreationWasNotAnsweredIsInTheState(t *testing.T) {
	n, first := name("lost"), int64(0)
	f := newFront(t)
	t.Parallel()
	runAs(
		t, environment("SLUICE_ENDPOINT", f.url),
		resource.TestStep{
			PreConfig: func() {
				put(t, elsewhere(n, 77)) // what was there and is gone: its versions are gone on with
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
	require.Equal(t, 2, f.count(http.MethodPut), "what may have been carried out is looked up, and not repeated")
}

func TestAPolicyOfSomebodyElseIsNotTakenForOnesOwnAfterALostAnswer(t *testing.T) {
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
	require.NoError(t, stored(t, n, func(p client.StoredPolicy) { require.Equal(t, int64(99), p.Rules[0].Limit) })(nil))
}

// A provider that read its object again right after the creation got a 404, and took it for a
// deletion.
func TestACreationUsesItsOwnAnswerAndReadsNothing(t *testing.T) {
	n := name("answer")
	f := newFront(t)
	w := workspace(t, "SLUICE_ENDPOINT="+f.url)
	t.Parallel()
	f.refuse(http.MethodGet, http.StatusNotFound)
	apply(t, w, simple(n, 5, ""))
	f.refuse(http.MethodGet, 0)
	out, err := w.Run(t.Context(), "plan", "-no-color", "-detailed-exitcode", "-input=false")
	require.NoError(t, err, "nothing is left to do")
	require.Contains(t, out, "No changes")
	destroy(t, w)
}

func TestAnAnswerThatIsLostAndCannotBeLookedUpIsSaidToBeUnknown(t *testing.T) {
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
			ExpectError: regexp.MustCompile(`It is not known whether the policy was stored`),
		},
		resource.TestStep{PreConfig: func() {
			f.refuse(http.MethodGet, 0)
		}, Config: simple(n, 5, ""), ExpectError: regexp.MustCompile(`The policy exists already`)},
		resource.TestStep{Config: simple(n, 5, "overwrite = true")},
	)
}

func TestAStoreThatIsAwayLeavesTheStateAsItWas(t *testing.T) {
	n := name("away")
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
}
