package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	t.Run("compute rules and bounds in a configuration", func(t *testing.T) {
		n := name("rate")
		w := workspace(t)
		t.Parallel()
		apply(t, w, fmt.Sprintf(`
locals {
  steady = provider::sluice::rate("100/m")
  strict = merge(provider::sluice::rate("1000/1h30m"), { name = "strict", algorithm = "sliding_window" })
}

resource "sluice_limiter_policy" "p" {
  name  = %q
  rules = [local.steady, local.strict]

  lifecycle {
    precondition {
      condition     = provider::sluice::worst_case(local.steady) <= 200
      error_message = "The database supports 200 requests a minute."
    }
  }
}

output "worst" {
  value = {
    steady  = provider::sluice::worst_case(local.steady)
    strict  = provider::sluice::worst_case(local.strict)
    fixed   = provider::sluice::worst_case({ algorithm = "fixed_window", limit = 10, window = "1s" })
    counter = provider::sluice::worst_case({ algorithm = "sliding_window_counter", limit = 10, window = "1s" })
    bucket  = provider::sluice::worst_case({ algorithm = "token_bucket", limit = 10, window = "1s", burst = 25 })
  }
}`, n))
		out, err := w.Run(t.Context(), "output", "-json", "worst")
		require.NoError(t, err)
		require.JSONEq(t, `{"steady": 200, "strict": 1000, "fixed": 20, "counter": 19, "bucket": 35}`, out)
		require.NoError(t, stored(t, n, func(p client.StoredPolicy) {
			require.Equal(t, []client.Rule{
				{Name: "per-1m", Algorithm: client.AlgorithmGCRA, Limit: 100, Window: time.Minute},
				{Name: "strict", Algorithm: client.AlgorithmSlidingWindow, Limit: 1000, Window: 90 * time.Minute},
			}, p.Rules)
		})(nil))
		destroy(t, w)
	})

	t.Run("report an invalid argument", func(t *testing.T) {
		t.Parallel()
		for call, want := range map[string]string{
			`rate("100")`: `must be a limit, a slash and a time`,
			`worst_case({ algorithm = "gcra", limit = 0, window = "1s" })`: `limit must be 1 to`,
		} {
			require.Contains(t, fails(t, "output \"o\" {\n  value = provider::sluice::"+call+"\n}"), want)
		}
	})
}
