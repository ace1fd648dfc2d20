package moduletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/telemetry"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	t.Run("have a runbook for each alarm, and no other runbooks", func(t *testing.T) {
		t.Parallel()
		named := matches(module(t, "alarms.tf"), `(?m)^\s+runbook\s+= "([a-z0-9-]+)"$`)
		slices.Sort(named)
		_, runbook, found := strings.Cut(read(t, "docs", "operations.md"), "\n## Runbook\n")
		require.True(t, found)
		sections := matches(runbook, `(?m)^### (.+)$`)
		slices.Sort(sections)
		require.Equal(t, slices.Compact(named), sections)
		for _, s := range strings.Split(runbook, "\n### ")[1:] {
			require.Contains(t, s, "\n1. ", "a runbook must have steps")
		}
	})

	t.Run("describe each metric", func(t *testing.T) {
		t.Parallel()
		text := read(t, "docs", "operations.md")
		for _, d := range telemetry.Catalogue() {
			require.Contains(t, text, fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", d.Function, d.Name,
				strings.Join(d.Dimensions, ", "), d.Unit, d.Description))
		}
		require.Equal(t, len(telemetry.Catalogue()),
			strings.Count(text, " | Count | ")+
				strings.Count(text, " | Milliseconds | ")+
				strings.Count(text, " | Bytes | "))
	})

	t.Run("list every variable and output of the module", func(t *testing.T) {
		t.Parallel()
		reference := read(t, "docs", "deploy.md")
		var declared []string
		for _, file := range []string{"variables.tf", "variables_stores.tf", "variables_operations.tf"} {
			declared = append(declared, matches(module(t, file), `(?m)^variable "(\w+)" {$`)...)
		}
		variables, rest, found := strings.Cut(reference, "\n## Outputs\n")
		require.True(t, found)
		require.Equal(t, declared, matches(variables, "(?m)^\\| `(\\w+)` \\| `"))
		outputs, environment, found := strings.Cut(rest, "\n## Environment of the functions\n")
		require.True(t, found)
		declaredOutputs := matches(module(t, "outputs.tf"), `(?m)^output "(\w+)" {$`)
		require.Equal(t, declaredOutputs, matches(outputs, "(?m)^\\| `(\\w+)` \\|"))
		set := matches(module(t, "functions.tf"), `(?m)\b(SLUICE_[A-Z0-9_]+)\s+=`)
		require.ElementsMatch(t, set, matches(environment, "`(SLUICE_[A-Z0-9_]+)`"))
	})

	t.Run("have no broken links", func(t *testing.T) {
		t.Parallel()
		for _, page := range []string{"operations.md", "cost.md", "deploy.md"} {
			text := read(t, "docs", page)
			var anchors []string
			for _, heading := range matches(text, `(?m)^##+ (.+)$`) {
				anchors = append(anchors, strings.ReplaceAll(strings.ToLower(heading), " ", "-"))
			}
			for _, target := range matches(text, `\]\(([^)]+)\)`) {
				if anchor, ok := strings.CutPrefix(target, "#"); ok {
					require.Contains(t, anchors, anchor, page)
					continue
				}
				target, _, _ = strings.Cut(target, "#")
				if strings.HasPrefix(target, "https://") {
					continue
				}
				_, err := os.Stat(filepath.Join(root, "docs", target))
				require.NoError(t, err, "%s links to %s", page, target)
			}
		}
	})
}
