package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBinary(t *testing.T) {
	t.Parallel()
	t.Run("creates, changes, restores and destroys a policy", func(t *testing.T) {
		n := name("commandline")
		w := workspace(t)
		t.Parallel()
		out := apply(t, w, simple(n, 5, ""))
		require.Contains(t, out, "1 added, 0 changed, 0 destroyed")

		_, err := w.Run(t.Context(), "plan", "-no-color", "-input=false", "-detailed-exitcode")
		require.NoError(t, err, "the plan after the apply must have no changes")

		out = apply(t, w, simple(n, 6, ""))
		require.Contains(t, out, "0 added, 1 changed, 0 destroyed")

		require.NoError(t, connect(t).DeletePolicy(t.Context(), n))
		out, err = w.Run(t.Context(), "plan", "-no-color", "-input=false")
		require.NoError(t, err)
		require.Contains(t, out, "The policy was deleted elsewhere")
		require.Contains(t, out, "1 to add, 0 to change, 0 to destroy")

		out = apply(t, w, simple(n, 6, ""))
		require.Contains(t, out, "1 added, 0 changed, 0 destroyed")
		destroy(t, w)
		require.NoError(t, missing(t, n)(nil))
	})

	t.Run("creates many policies in one apply", func(t *testing.T) {
		n := name("many")
		w := workspace(t)
		t.Parallel()
		configuration := `
resource "sluice_limiter_policy" "p" {
  for_each = toset([for i in range(30) : tostring(i)])
  name     = "` + n + `-${each.key}"
  rules    = [{ name = "r", algorithm = "gcra", limit = 1 + tonumber(each.key), window = "1s" }]
}`
		require.Contains(t, apply(t, w, configuration), "30 added")
		_, err := w.Run(t.Context(), "plan", "-no-color", "-input=false", "-detailed-exitcode")
		require.NoError(t, err)
		destroy(t, w)
	})
}
