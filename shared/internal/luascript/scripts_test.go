package luascript_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/internal/luascript"
)

// domains returns the packages that have scripts.
func domains() []string { return []string{"delayqueue", "lock", "ratelimit"} }

// luaFiles returns the text of each file in the folder "scripts" and its subfolders, by path.
func luaFiles(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	out := make(map[string]string)
	require.NoError(t, fs.WalkDir(files, "scripts", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, file)
		out[file] = string(text)
		return err
	}))
	require.NotEmpty(t, out)
	return out
}

// isScript reports whether a file is a script: not a prelude and not a part.
func isScript(file string) bool {
	return path.Dir(file) == "scripts" && path.Base(file) != "prelude.lua"
}

var (
	definitionName = regexp.MustCompile(`(?m)^define (\$\w+|\$\{\w+\})`)
	definition     = regexp.MustCompile(`(?m)^define .*\n( .*\n|\n)*`)
	// position matches a call of string.sub, or of a local alias "sub", whose position is a literal
	// number.
	position = regexp.MustCompile(`\bsub\([^,()]+(\([^()]*\))?, *-?[0-9]`)
)

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, domain := range domains() {
		t.Run(domain, func(t *testing.T) {
			t.Parallel()
			files := os.DirFS(path.Join("..", "..", domain))
			texts := luaFiles(t, files)

			t.Run("every script composes without an error", func(t *testing.T) {
				t.Parallel()
				for file := range texts {
					if isScript(file) {
						_, err := luascript.Compose(files, file)
						require.NoError(t, err)
					}
				}
			})

			t.Run("every file starts with a header and has at most 150 lines", func(t *testing.T) {
				t.Parallel()
				for file, text := range texts {
					require.Regexp(t, `^(#!.*\n)?-- [A-Z]`, text, file)
					require.LessOrEqual(t, strings.Count(text, "\n"), 150, file)
				}
			})

			t.Run("comments end within 100 columns and code within 120", func(t *testing.T) {
				t.Parallel()
				for file, text := range texts {
					for line := range strings.SplitSeq(text, "\n") {
						limit := 120
						if strings.HasPrefix(strings.TrimSpace(line), "--") {
							limit = 100
						}
						require.LessOrEqual(t, len(line), limit, "%s: %s", file, line)
					}
				}
			})

			t.Run("positions in strings have names", func(t *testing.T) {
				t.Parallel()
				for file, text := range texts {
					code := definition.ReplaceAllString(text, "")
					require.Empty(t, position.FindAllString(code, -1), file)
				}
			})

			t.Run("every definition and every part is used", func(t *testing.T) {
				t.Parallel()
				all := ""
				for _, text := range texts {
					all += text
				}
				for _, name := range definitionName.FindAllStringSubmatch(all, -1) {
					require.Greater(t, strings.Count(all, name[1]), 1, name[1])
				}
				for file := range texts {
					if !isScript(file) {
						name := strings.TrimSuffix(strings.TrimPrefix(file, "scripts/"), ".lua")
						require.Regexp(t, `-- Requires:[^\n]*(\n--  [^\n]*)*\b`+name+`\b`, all)
					}
				}
			})
		})
	}
}
