package acceptance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// refusal has arguments that the service would reject, and the message that Terraform must print.
type refusal struct{ arguments, want string }

// fine is a valid rule.
const fine = `{ name = "a", algorithm = "gcra", limit = 1, window = "1s" }`

// withRule returns a refusal for a policy with one rule. more is the text of further attributes of
// the rule.
func withRule(algorithm, limit, window, more, want string) refusal {
	return refusal{fmt.Sprintf("rules = [{ name = \"a\", algorithm = %q, limit = %s, window = %q %s }]", algorithm,
		limit, window, more), want}
}

// with returns a refusal for a policy with a valid rule and further arguments.
func with(arguments, want string) refusal {
	return refusal{"rules = [" + fine + "]\n  " + arguments, want}
}

// refusals returns all refusals by title.
func refusals() map[string]refusal {
	return map[string]refusal{
		"an unknown mode":     with(`mode = "off"`, `mode must be "enforce"`),
		"an empty mode":       with(`mode = ""`, `mode must not be empty`),
		"an unknown fallback": with(`on_unavailable = "open"`, `on_unavailable must be "local"`),
		"a share of 0":        with(`local_share = 0`, `local_share must be over 0`),
		"a share above 1":     with(`local_share = 1.5`, `local_share must be over 0 and at most 1`),
		"a long description": with(`description = "`+strings.Repeat("x", 1025)+`"`,
			`description must be at most 1024 bytes`),
		"no rules": {"rules = []", `rules must be 1 to 8 rules`},
		"nine rules": {
			`rules = [for i in range(9) : { name = "r${i}", algorithm = "gcra", limit = 1, window = "1s" }]`,
			`rules must be 1 to 8 rules`,
		},
		"two rules with one name": {"rules = [" + fine + "," + fine + "]",
			`rules[1].name is already the name of rules[0]`},
		"an unknown algorithm": withRule("leaky", "1", "1s", "", `rules[0].algorithm must be "fixed_window"`),
		"a limit of 0":         withRule("gcra", "0", "1s", "", `rules[0].limit must be 1 to 1000000000`),
		"a limit too large for a sliding window": withRule("sliding_window", "100001", "1s", "",
			`rules[0].limit must be 1 to 100000`),
		"a fraction of a limit": withRule("gcra", "100 / 3", "1s", "",
			`rules[0].limit must be an integer, but is 33.33333333; use floor or ceil`),
		"a fraction of a burst": withRule("gcra", "3", "1s", ", burst = 0.5",
			`rules[0].burst must be an integer, but is 0.5`),
		"a window of 0":         withRule("gcra", "1", "0s", "", `rules[0].window must be 1ms to 366d`),
		"a window of two years": withRule("gcra", "1", "731d", "", `rules[0].window must be 1ms to 366d`),
		"a window that is no duration": withRule("gcra", "1", "hourly", "",
			`rules[0].window must be a length of time such as "500ms"`),
		"a window without a unit": withRule("gcra", "1", "60", "", `must be a length of time`),
		"a burst for a fixed window": withRule("fixed_window", "1", "1s", ", burst = 2",
			`rules[0].burst is only for token_bucket and gcra`),
		"a burst of 0": withRule("gcra", "1", "1s", ", burst = 0",
			`rules[0].burst must be 1 to 1000000000`),
		"a product that overflows": withRule("gcra", "1000000000", "366d", "",
			`rules[0].limit is too large for a window of this length`),
		"an override without effect": with(`overrides = [{ key = "a" }]`,
			`overrides[0] must have a mode, rules or both`),
		"an override without a key": with(`overrides = [{ key = "", mode = "deny" }]`,
			`overrides[0].key must be 1 to 512 bytes`),
		"a star inside a key": with(`overrides = [{ key = "a*b", mode = "deny" }]`,
			`may contain a * only at its end`),
		"a key twice": with(`overrides = [{ key = "a", mode = "deny" }, { key = "a", mode = "allow" }]`,
			`is already the key of overrides[0]`),
		"an override's bad rule": with(
			`overrides = [{ key = "a", rules = [{ name = "x", algorithm = "gcra", limit = 0, window = "1s" }] }]`,
			`overrides[0].rules[0].limit must be`,
		),
		"an unknown argument": with(`burst = 5`, `An argument named "burst" is not expected here`),
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	// No server listens on port 1, because validation must not need the endpoint.
	t.Run("reports every invalid value at its attribute", func(t *testing.T) {
		t.Parallel()
		w := workspace(t, "SLUICE_ENDPOINT=http://127.0.0.1:1")
		configuration := requires
		label := func(title string) string { return strings.NewReplacer(" ", "_", "'", "").Replace(title) }
		for title, c := range refusals() {
			configuration += fmt.Sprintf("resource \"sluice_limiter_policy\" %q {\n  name = \"p\"\n  %s\n}\n",
				label(title), c.arguments)
		}
		configuration += "resource \"sluice_limiter_policy\" \"a_name_with_a_space\" {\n" +
			"  name = \"log in\"\n  rules = [" + fine + "]\n}\n"
		require.NoError(t, w.Write(configuration))

		out, err := w.Run(t.Context(), "validate", "-json")
		require.Error(t, err)
		reported := diagnostics(t, out)
		for title, c := range refusals() {
			require.Len(t, reported[label(title)], 1, "%s: %v", title, reported[label(title)])
			require.Contains(t, reported[label(title)][0], c.want, title)
		}
		require.Contains(t, reported["a_name_with_a_space"][0], "name must")
		require.Len(t, reported, len(refusals())+1)
	})

	t.Run("reports an invalid value during the plan too", func(t *testing.T) {
		t.Parallel()
		output := fails(t, "resource \"sluice_limiter_policy\" \"p\" {\n  name = \"p\"\n  rules = []\n}\n",
			"SLUICE_ENDPOINT=http://127.0.0.1:1")
		require.Contains(t, output, "rules must be 1 to 8 rules")
	})

	// If a validator fails on unknown values, no configuration with references can be validated.
	t.Run("accepts values that exist only after apply", func(t *testing.T) {
		n := name("unknown")
		run(t, resource.TestStep{Config: fmt.Sprintf(`
resource "terraform_data" "later" {
  input = {
    limit = 5, window = "1h", name = %q, mode = "deny", key = "a", algorithm = "gcra", share = 0.5, rules = [%s]
  }
}

locals { later = terraform_data.later.output }

resource "sluice_limiter_policy" "p" {
  name           = local.later.name
  description    = local.later.key
  mode           = local.later.mode
  on_unavailable = local.later.mode
  local_share    = local.later.share
  no_deny_cache  = local.later.limit > 4
  rules = [{
    name  = local.later.key, algorithm = local.later.algorithm, limit = local.later.limit, window = local.later.window,
    burst = local.later.limit
  }]
  overrides      = [{ key = local.later.key, mode = local.later.mode, rules = local.later.rules }]
}`, n, fine), Check: stored(t, n, func(p client.StoredPolicy) {
			require.Equal(t, int64(5), p.Rules[0].Limit)
			require.Len(t, p.Overrides[0].Rules, 1)
		})})
	})

	t.Run("validates known values next to unknown values", func(t *testing.T) {
		run(t, resource.TestStep{Config: `
resource "terraform_data" "later" {
  input = { limit = 5 }
}

resource "sluice_limiter_policy" "p" {
  name  = "login"
  rules = [{ name = "a", algorithm = "gcra", limit = terraform_data.later.output.limit, window = "900d" }]
}`, PlanOnly: true, ExpectError: regexp.MustCompile(`rules\[0\].window must be 1ms to 366d`)})
	})

	t.Run("refuses an invalid value during apply", func(t *testing.T) {
		n := name("late")
		run(t, resource.TestStep{Config: fmt.Sprintf(`
resource "terraform_data" "later" {
  input = { limit = 0 }
}

resource "sluice_limiter_policy" "p" {
  name  = %q
  rules = [{ name = "a", algorithm = "gcra", limit = terraform_data.later.output.limit, window = "1s" }]
}`, n), ExpectError: regexp.MustCompile(`rules\[0\].limit must be 1 to 1000000000`)})
		require.NoError(t, missing(t, n)(nil))
	})
}

// diagnostics returns the errors of `validate -json` by the label of the resource.
func diagnostics(t *testing.T, out string) map[string][]string {
	t.Helper()
	var printed struct {
		Diagnostics []struct {
			Severity string `json:"severity"`
			Detail   string `json:"detail"`
			Snippet  struct {
				Context string `json:"context"`
			} `json:"snippet"`
		} `json:"diagnostics"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &printed), out)
	details := make(map[string][]string)
	for _, d := range printed.Diagnostics {
		if d.Severity != "error" { // Terraform warns that the provider is a local build
			continue
		}
		parts := strings.Split(d.Snippet.Context, `"`)
		require.Len(t, parts, 5, "%+v", d)
		details[parts[3]] = append(details[parts[3]], d.Detail)
	}
	return details
}
