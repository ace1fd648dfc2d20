package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	// The test skips queries (.tfquery.hcl) and actions, because they need Terraform 1.14.
	t.Run("validates the examples of the registry documentation", func(t *testing.T) {
		t.Parallel()
		folders, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*"))
		require.NoError(t, err)
		checked := 0
		for _, folder := range append(folders, filepath.Join("..", "..", "examples", "provider")) {
			files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
			require.NoError(t, err)
			configuration := requires
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				if filepath.Base(file) == "provider.tf" {
					configuration = "" // it has its own required_providers
				}
				if filepath.Base(file) != "import-by-identity.tf" || len(files) == 1 { // one import per address
					configuration += string(text)
				}
			}
			if len(files) == 0 || strings.Contains(folder, "actions") {
				continue
			}
			w := workspace(t)
			require.NoError(t, w.Write(configuration))
			_, err = w.Run(t.Context(), "validate", "-no-color")
			require.NoError(t, err, folder)
			checked++
		}
		require.Equal(t, 7, checked, "the provider, a resource, three data sources, two functions")
	})

	t.Run("validates the configurations in docs/terraform-provider.md and docs/policies.md", func(t *testing.T) {
		t.Parallel()
		block := regexp.MustCompile("(?s)```hcl\n(.*?)```")
		checked := 0
		for _, page := range []string{"terraform-provider.md", "policies.md"} {
			//nolint:gosec // a file of the repository
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
			require.NoError(t, err)
			for _, m := range block.FindAllStringSubmatch(string(text), -1) {
				configuration := m[1]
				if !strings.HasPrefix(configuration, "terraform {") {
					configuration = requires + configuration
				}
				if strings.Contains(configuration, "import {") {
					configuration += simple("login", 5, "")
					configuration = strings.ReplaceAll(configuration, `"p" {`, `"login" {`)
				}
				w := workspace(t)
				require.NoError(t, w.Write(configuration))
				_, err := w.Run(t.Context(), "validate", "-no-color")
				require.NoError(t, err, "%s: %s", page, m[1])
				checked++
			}
		}
		require.Equal(t, 3, checked)
	})
}
