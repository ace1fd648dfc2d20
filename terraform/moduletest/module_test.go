// Package moduletest compares the Terraform module with the code that the module deploys: routes,
// environment, permissions, tables, metrics and runbooks. The tests in terraform/module/tests check
// the module's plans; see tools/check-module.sh.
package moduletest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the root folder of the repository.
const root = "../.."

// read returns the text of a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// module returns the text of a file of the module.
func module(t *testing.T, file string) string {
	t.Helper()
	return read(t, "terraform", "module", file)
}

// block returns the text between head, which must start a line, and the closing brace with the same
// indentation.
func block(t *testing.T, text, head string) string {
	t.Helper()
	_, rest, found := strings.Cut("\n"+text, "\n"+head)
	require.True(t, found, "the text has no line that starts with %q", head)
	indent := head[:len(head)-len(strings.TrimLeft(head, " "))]
	body, _, found := strings.Cut(rest, "\n"+indent+"}")
	require.True(t, found, "%q is not closed", head)
	return body
}

// matches finds every match of the pattern in the text and returns the first group of each.
func matches(text, pattern string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// sources returns the text of the Go files in a folder and its subfolders, without tests, by path.
func sources(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, folder),
		func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			out[path] = string(text)
			return err
		}))
	return out
}
