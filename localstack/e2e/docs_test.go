package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests run the code blocks of the documents and check their links and references.

// block returns the first fenced code block of a file that is in the given language and contains
// the given text. In the block, it replaces the API's address with the address of the running
// stack.
func block(t *testing.T, file, language, what string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], what) {
			return strings.ReplaceAll(m[1], "http://127.0.0.1:4000", system.APIURL)
		}
	}
	require.Fail(t, "not found", "%s has no %s block that contains %q", file, language, what)
	return ""
}

func TestTheReadmesCurlLinesWork(t *testing.T) {
	t.Parallel()
	script := block(t, "README.md", "sh", "curl -si") + strings.Repeat(
		`curl -si $API/v1/limits/login/check -H "$JSON" -d '{"key": "ann"}'`+"\n", 5)
	// Use a policy of its own: the quickstart's program checks "login" concurrently, and an
	// instance remembers for a moment that a policy does not exist.
	script = strings.ReplaceAll(script, "/login", "/login-of-the-readme")
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, seen := range []string{`"fence":`, `"code":"lock_held"`, `"holder":"me"`, `"id":"order-42"`,
		`"state":"scheduled"`, `RateLimit: "per-minute";r=4;t=`} {
		require.Contains(t, strings.ReplaceAll(string(out), "Ratelimit:", "RateLimit:"), seen)
	}
	require.Equal(t, 1, strings.Count(string(out), "HTTP/1.1 429"), "only the sixth check gets a 429:\n%s", out)
}

func TestTheQuickstartsProgramRuns(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("../../.cache", "quickstart-") //nolint:usetesting // inside the module, so that it imports this client
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(block(t, "docs/quickstart.md", "go", "package main")), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "acquired, with fence ")
	require.Contains(t, string(out), "remind-42 is scheduled and due at ")
}

func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	root := "../.."
	files, err := filepath.Glob(root + "/docs/*.md")
	require.NoError(t, err)
	more, err := filepath.Glob(root + "/docs/decisions/*.md")
	require.NoError(t, err)
	files = append(append(files, more...), root+"/README.md", root+"/CONTRIBUTING.md", root+"/CHANGELOG.md")
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
			require.NoError(t, err, "%s links to %s, which does not exist", file, m[1])
		}
	}
}

// The tables of failures in the documents name the test for each failure: `TestX`, or `TestX/name
// of a sub-test`.
func TestEveryTestThatTheDocumentsNameExists(t *testing.T) {
	t.Parallel()
	sources := testSources(t)
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	exists := make(map[string]bool)
	for _, m := range declaration.FindAllStringSubmatch(sources, -1) {
		exists[m[1]] = true
	}

	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	reference := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w+)(?:/([^`]+))?`")
	named := 0
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
			require.True(t, exists[m[1]], "%s names %s, which does not exist", file, m[1])
			for part := range strings.SplitSeq(m[2], "/") {
				require.Contains(t, sources, `"`+part, "%s names %s, which does not exist", file, m[0])
			}
			named++
		}
	}
	require.Greater(t, named, 20)
}

// testSources returns the text of all test files of the repository and of the package locktest.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		isTest := strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == "locktest"
		if err != nil || entry.IsDir() || !isTest {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		all.Write(text)
		return err
	}))
	return all.String()
}
