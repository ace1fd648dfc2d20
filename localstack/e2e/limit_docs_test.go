package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shell finds the first shell block in a document whose text contains what. It runs this block and
// returns the output.
func shell(t *testing.T, file, what string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-euc", block(t, file, "sh", what)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestLimitsPage(t *testing.T) {
	t.Parallel()
	t.Run("its commands work", func(t *testing.T) {
		t.Parallel()
		out := shell(t, "docs/limits.md", "curl -si")
		require.Equal(t, 1, strings.Count(out, "HTTP/1.1 200"), out)
		require.Contains(t, out, `"burst";q=20;w=1, "hourly";q=500;w=3600`)
		require.Contains(t, out, `"decisions":[`)
		require.Contains(t, out, `"remaining":495`)
		require.Contains(t, out, `"reset":true`)
		require.NotContains(t, out, `"code":`)
	})

	t.Run("the tests that it names exist", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("../../docs/limits.md")
		require.NoError(t, err)
		var sources strings.Builder
		for _, pattern := range []string{"../../shared/ratelimit/*_test.go", "../../shared/policy/*_test.go"} {
			files, err := filepath.Glob(pattern)
			require.NoError(t, err)
			for _, file := range files {
				source, err := os.ReadFile(file) //nolint:gosec // a file of the repository
				require.NoError(t, err)
				sources.Write(source)
			}
		}
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/[^`]+)?`").FindAllStringSubmatch(string(text), -1)
		require.GreaterOrEqual(t, len(named), 15)
		for _, m := range named {
			require.Contains(t, sources.String(), "func "+m[1]+"(t *testing.T)")
		}
	})
}

func TestPoliciesPage(t *testing.T) {
	t.Parallel()
	out := shell(t, "docs/policies.md", "If-None-Match")
	for _, status := range []string{"201 Created", "200 OK", "204 No Content"} {
		require.Equal(t, 1, strings.Count(out, "HTTP/1.1 "+status), out)
	}
	require.Contains(t, out, `"version":2`)
	require.Contains(t, out, `"policies":[`)
	name := put(t, object{"rules": []object{rule("r", "gcra", 1, 1)}})
	want(t, 200, "PUT", "/v1/policies/"+name, block(t, "docs/policies.md", "json", `"overrides"`))
}
