package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository returns the root folder of a repository with one program, a licence and the
// configuration.
func repository(t *testing.T, configuration string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"cmd/a/main.go": "package main", "LICENSE": "", ".goreleaser.yaml": configuration,
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return root
}

func TestRun(t *testing.T) {
	t.Parallel()
	const build = "version: 2\nbuilds: [{id: a, main: ./cmd/a}]\n"
	for title, c := range map[string]struct{ rest, refusal string }{
		"accepts a valid configuration":       {"archives: [{id: z, ids: [a], files: [LICENSE]}]", ""},
		"accepts files that the build writes": {"release: {extra_files: [{glob: dist/*.zip}]}", ""},
		"refuses an unknown field":            {"archive: []", "field archive not found"},
		"refuses an unknown build":            {"archives: [{ids: [b]}]", `no build with the ID "b"`},
		"refuses two archives with one ID":    {"archives: [{id: z}, {id: z}]", `have the ID "z"`},
		"refuses an SBOM for a missing build": {"sboms: [{ids: [b]}]", `no build with the ID "b"`},
		"refuses a missing file":              {"archives: [{files: [README.md]}]", "README.md does not exist"},
		"refuses a missing extra file": {
			"checksum: {extra_files: [{glob: manifest.json}]}", "manifest.json does not exist",
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			err := run([]string{"-root", repository(t, build+c.rest), ".goreleaser.yaml"})
			if c.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.refusal)
		})
	}
	t.Run("refuses a missing program", func(t *testing.T) {
		t.Parallel()
		root := repository(t, "version: 2\nbuilds: [{id: b, main: ./cmd/b}]")
		require.ErrorContains(t, run([]string{"-root", root, ".goreleaser.yaml"}), "cmd/b/main.go does not exist")
	})
	t.Run("refuses an old version", func(t *testing.T) {
		t.Parallel()
		root := repository(t, "version: 1\narchive: []")
		require.ErrorContains(t, run([]string{"-root", root, ".goreleaser.yaml"}), "version: 2")
	})
	t.Run("refuses a call without a configuration", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, run(nil), "name the configurations")
	})
}
