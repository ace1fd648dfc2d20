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

func TestReadme(t *testing.T) {
	t.Parallel()

	t.Run("its Go lines compile", func(t *testing.T) {
		t.Parallel()
		program := `package main

import (
	"context"
	"os"
	"time"

	"github.com/sluicehq/sluice/client"
)

func report(context.Context, int64) error { return nil }

func main() {
	ctx, order := context.Background(), 42
` + block(t, "README.md", "go", "client.New") + `
	_, _ = allowed, err
}
`
		// The folder is inside the module, so that the program imports the client of this
		// repository.
		dir, err := os.MkdirTemp("../../.cache", "readme-") //nolint:usetesting // see above
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		file := filepath.Join(dir, "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))

		out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})

	t.Run("its numbers match the last full benchmark", func(t *testing.T) {
		t.Parallel()
		readme, err := os.ReadFile("../../README.md")
		require.NoError(t, err)
		measured, err := os.ReadFile("../../docs/benchmarks.md")
		require.NoError(t, err)

		table := regexp.MustCompile(`(?s)<!-- headlines.*?-->(.*)<!-- end`).FindStringSubmatch(string(readme))
		require.Len(t, table, 2)
		rows := strings.Split(strings.TrimSpace(table[1]), "\n")[2:]
		require.Len(t, rows, 4)
		for _, row := range rows {
			cells := strings.Split(row, " | ")
			require.Contains(t, string(measured), "| "+cells[1]+" | "+cells[2]+" |", row)
		}
	})
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)

	t.Run("lists every package of the product", func(t *testing.T) {
		t.Parallel()
		list := exec.CommandContext(t.Context(), "go", "list", "./functions/...", "./shared/...")
		list.Dir = "../.."
		out, err := list.Output()
		require.NoError(t, err)
		for path := range strings.FieldsSeq(string(out)) {
			name := strings.TrimPrefix(path, "github.com/sluicehq/sluice/")
			require.Contains(t, string(page), "`"+name+"`")
		}
	})

	t.Run("names only packages that exist", func(t *testing.T) {
		t.Parallel()
		_, table, _ := strings.Cut(string(page), "## Packages")
		for _, m := range regexp.MustCompile("`((?:functions|shared|client|cmd|terraform|localstack|bench|tools)[a-z/]*)`").
			FindAllStringSubmatch(table, -1) {
			require.DirExists(t, filepath.Join("../..", m[1]))
		}
	})
}

func TestDecisionsIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/decisions/README.md")
	require.NoError(t, err)
	records, err := filepath.Glob("../../docs/decisions/0*.md")
	require.NoError(t, err)
	require.NotEmpty(t, records)

	for _, record := range records {
		text, err := os.ReadFile(record) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		_, title, _ = strings.Cut(title, ". ")
		row := regexp.MustCompile(regexp.QuoteMeta("["+title+"]("+filepath.Base(record)+")") +
			` \| (accepted|replaced by \d{4}) \| \d{4}-\d\d-\d\d \|`)
		require.Regexp(t, row, string(index), record)
	}
}
