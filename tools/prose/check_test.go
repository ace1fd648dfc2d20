package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("word ", 25)
	for name, tc := range map[string]struct {
		file, source string
		want         []string
	}{
		"a comment with a stopper": {
			"a.go", "package a\n\n// Put answers when Redis is away.\nfunc Put() {}\n", []string{`3: "is away"`},
		},
		"a message with a stopper": {
			"a.go", "package a\n\nconst m = \"the job was taken in\"\n", []string{`3: "taken in"`},
		},
		"an identifier is not prose": {"a.go", "package a\n\nvar till, beside int\n", nil},
		"a directive is not prose":   {"a.go", "package a\n\n//go:embed till beside at once.txt\n", nil},
		"a wide comment":             {"a.go", "package a\n\n// " + wide + "\n", []string{"3: 12"}},
		"a wide line of code":        {"a.go", "package a\n\nconst m = `" + wide + "`\n", nil},
		"a wide Lua comment":         {"a.lua", "return 1\n-- " + wide, []string{"2: 12"}},
		"a wide address":             {"a.md", "See https://example.test/" + wide + "\n", nil},
		"a wide table":               {"a.md", "| " + wide + " |\n", nil},
		"wide prose":                 {"a.md", wide + "\n", []string{"1: 12"}},
		"a code block":               {"a.md", "```\nat once " + wide + "\n```\n", nil},
		"plain prose":                {"a.md", "The dispatcher claims due jobs.\n", nil},
		"an unknown kind of file":    {"a.svg", "at once", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := Check(tc.file, []byte(tc.source))
			require.Len(t, found, len(tc.want), "%v", found)
			for i, want := range tc.want {
				require.Contains(t, found[i].String(), want)
			}
		})
	}
}
