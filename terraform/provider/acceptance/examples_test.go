package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The examples are what the documentation shows. Those that only Terraform 1.14 reads, .tfquery.hcl and actions, are not among them.
func TestTheExamplesOfTheDocumentationAreValid(t *testing.T) {
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
				configuration = "" // it says itself what it requires
			}
			if filepath.Base(file) != "import-by-identity.tf" || len(files) == 1 { // one address is imported once
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
}
