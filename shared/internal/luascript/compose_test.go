package luascript_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/internal/luascript"
)

// head is a header of six lines: two keys, two arguments and a reply.
const head = `-- Does it.
--
-- KEYS  1 state   2 queue
-- ARGV  1 token
--       2 ttl    in µs
-- Reply 1
`

// compose composes the script s/do.lua, whose text is head followed by body. The map others has the
// text of each other file in the folder, by name.
func compose(body string, others map[string]string) (luascript.Source, error) {
	files := fstest.MapFS{"s/do.lua": {Data: []byte(head + body)}}
	for name, text := range others {
		files["s/"+name+".lua"] = &fstest.MapFile{Data: []byte(text)}
	}
	return luascript.Compose(files, "s/do.lua")
}

// code returns text without its empty lines.
func code(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestCompose(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, prelude, body, want string
	}{
		{"replaces the names of keys and arguments", "", "return KEYS.queue .. ARGV.ttl", "return KEYS[2] .. ARGV[2]"},
		{"keeps numbers and lengths of keys and arguments", "", "return #KEYS + ARGV[3]", "return #KEYS + ARGV[3]"},
		{"keeps names inside strings", "", `return 'KEYS.queue $f(x) -- no comment'`,
			`return 'KEYS.queue $f(x) -- no comment'`},
		{"removes comments", "", "local a = 1 -- KEYS.nothing\n  -- $nothing(\nreturn a", "local a = 1\nreturn a"},
		{"keeps an escaped quote", "", `return 'it\'s -- ' .. "\"--"`, `return 'it\'s -- ' .. "\"--"`},
		{"replaces constants", "define ${A} 16", "return ${A} + 1", "return 16 + 1"},
		{"replaces constants inside strings", "define ${A} (%d+)", "return '^${A} ${A}$'", "return '^(%d+) (%d+)$'"},
		{"replaces constants that use constants", "define ${A} 1\ndefine ${B} ${A}, 2", "return ${B}", "return 1, 2"},
		{"replaces calls", "define $f(a, b) sub(a, 1, b)", "return $f(x, g(1, 2))", "return sub(x, 1, g(1, 2))"},
		{"replaces calls in arguments", "define $f(a) g(a)", "return $f($f(x))", "return g(g(x))"},
		{"replaces calls in bodies", "define $f(a) g(a)\ndefine $h(b) $f(b)", "return $h(x)", "return g(x)"},
		{"accepts calls without arguments", "define $f() g()", "return $f()", "return g()"},
		{"accepts a comma inside a string", "define $f(a) g(a)", "return $f('a,b)')", "return g('a,b)')"},
		{"puts an argument that has an operator in parentheses", "define $f(a) a * 2", "return $f(x + 1)",
			"return ((x + 1) * 2)"},
		{"puts a body that has an operator in parentheses", "define $f(a) a + 1", "return 2 * $f(x)",
			"return 2 * (x + 1)"},
		{"puts no list of expressions in parentheses", "define $f(a) a.x, #a", "return $f(x)", "return x.x, #x"},
		{"does not replace a field that has a parameter's name", "define $f(a) b.a(a)", "return $f(x)",
			"return b.a(x)"},
		{"replaces a parameter inside a string", "define $f(s) match(r, '^${s} ')\ndefine ${S} w", "return $f(${S})",
			"return match(r, '^w ')"},
		{"puts a body of several lines on one line", "define $f(a)\n  do -- why\n    g(a)\n\n  end", "$f(x)\nreturn 1",
			"do g(x) end\nreturn 1"},
		{"puts a body with nested statements on one line", "define $f(a)\n  if a then\n    g(a)\n  end\n\n-- next",
			"$f(x)\nreturn 1", "if x then g(x) end\nreturn 1"},
		{"uses definitions of the script's own file", "", "define $f(a) g(a)\nreturn $f(1)", "return g(1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			requires, others := "", map[string]string{}
			if test.prelude != "" {
				requires, others["prelude"] = "-- Requires: prelude\n", test.prelude
			}
			source, err := compose(requires+test.body, others)
			require.NoError(t, err)
			require.Equal(t, test.want, code(source.Text))
		})
	}

	t.Run("keeps the lines of a script that requires no code", func(t *testing.T) {
		t.Parallel()
		source, err := compose("-- Requires: prelude\nlocal a = $f(1,\n  2)\n\nreturn a",
			map[string]string{"prelude": "define $f(a, b) g(a, b)"})
		require.NoError(t, err)
		lines := strings.Split(source.Text, "\n")
		require.Equal(t, "return a", lines[10])
		require.Equal(t, luascript.Position{File: "s/do.lua", Line: 11}, source.Position(11))
	})

	t.Run("puts required files first, each once", func(t *testing.T) {
		t.Parallel()
		source, err := compose("-- Requires: part/b,\n--   part/a\nreturn a + b", map[string]string{
			"part/a": "-- A.\nlocal a = KEYS.state", "part/b": "-- B.\n-- Requires: part/a\nlocal b = a",
		})
		require.NoError(t, err)
		require.Equal(t, "local a = KEYS[1]\nlocal b = a\nreturn a + b", code(source.Text))
		for line, want := range map[int]string{
			2: "s/part/a.lua:2", 5: "s/part/b.lua:3", 14: "s/do.lua:9", 0: ":0", 15: ":0",
		} {
			require.Equal(t, want, source.Position(line).String())
		}
	})

	t.Run("keeps an interpreter line first", func(t *testing.T) {
		t.Parallel()
		files := fstest.MapFS{
			"do.lua": {Data: []byte("#!lua flags=allow-oom\n" + head + "-- Requires: a\nreturn a")},
			"a.lua":  {Data: []byte("local a = 1")},
		}
		source, err := luascript.Compose(files, "do.lua")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(source.Text, "#!lua flags=allow-oom\nlocal a = 1\n"), source.Text)
		require.Equal(t, "a.lua:1", source.Position(2).String())
		require.Equal(t, "do.lua:9", source.Position(10).String())
		require.Equal(t, "return a", strings.Split(source.Text, "\n")[9])
	})
}

func TestComposeErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, prelude, body, want string
	}{
		{"unknown call", "", "\nreturn $f(1)", "s/do.lua:9: $f is not defined"},
		{"unknown constant", "", "return ${F}", "s/do.lua:8: ${F} is not defined"},
		{"unknown constant inside a string", "", "return '^${F}$'", "s/do.lua:8: ${F} is not defined"},
		{"unknown call in a body", "\ndefine $f(a) $g(a)", "return $f(1)",
			"s/do.lua:8: $g is not defined (in $f, defined at s/prelude.lua:2)"},
		{"unknown key", "", "return KEYS.stat", "s/do.lua:8: the script's header does not declare KEYS stat"},
		{"unknown argument", "", "return ARGV.state", "s/do.lua:8: the script's header does not declare ARGV state"},
		{"wrong number of arguments", "define $f(a, b) g(a, b)", "return $f(1)",
			"s/do.lua:8: $f takes 2 arguments and got 1"},
		{"call without parentheses", "define $f(a) g(a)", "return $f",
			"s/do.lua:8: $f needs its arguments in parentheses"},
		{"call that does not end", "define $f(a) g(a)", "return $f(1", "s/do.lua:8: $f has no closing parenthesis"},
		{"definition that uses itself", "define $f(a) $f(a)", "return $f(1)", "s/do.lua:8: a definition uses itself"},
		{"name that is defined twice", "define ${A} 1\ndefine ${A} 2", "",
			"s/prelude.lua:2: ${A} is already defined at s/prelude.lua:1"},
		{"malformed definition", "define A 1", "", "s/prelude.lua:1: a definition is "},
		{"empty definition", "define $f()", "", "s/prelude.lua:1: $f has no text"},
		{"string that does not end", "", "return 'a\nreturn 1", "s/do.lua:8: the string does not end on its line"},
		{"long brackets", "", "return [[a]]", "s/do.lua:8: long brackets are not supported"},
		{"long comment", "", "--[[ a\n]] return 1", "s/do.lua:8: long brackets are not supported"},
		{"dollar without a name", "", "return $ 1", "s/do.lua:8: $ without a name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := compose("-- Requires: prelude\n"+test.body, map[string]string{"prelude": test.prelude})
			require.ErrorContains(t, err, test.want)
		})
	}

	t.Run("missing required file", func(t *testing.T) {
		t.Parallel()
		_, err := compose("-- Requires: prelude, part/x\n", map[string]string{"prelude": ""})
		require.EqualError(t, err, `s/do.lua:7: requires "part/x", but there is no file s/part/x.lua`)
	})

	t.Run("missing script", func(t *testing.T) {
		t.Parallel()
		_, err := luascript.Compose(fstest.MapFS{}, "s/x.lua")
		require.ErrorContains(t, err, "s/x.lua")
	})

	t.Run("files that require each other", func(t *testing.T) {
		t.Parallel()
		_, err := compose("-- Requires: a\n", map[string]string{"a": "-- Requires: b\n", "b": "-- Requires: a\n"})
		require.EqualError(t, err, `s/b.lua:1: "a" requires itself`)
	})

	for name, test := range map[string][2]string{
		"no keys":                 {"-- KEYS", `s/do.lua:1: the header has no line that starts with "-- KEYS"`},
		"no arguments":            {"-- ARGV", `s/do.lua:1: the header has no line that starts with "-- ARGV"`},
		"no reply":                {"-- Reply", `s/do.lua:1: the header has no line that starts with "-- Reply"`},
		"number out of order":     {"2 queue", "s/do.lua:3: KEYS 3 follows 1"},
		"name that is used twice": {"2 ttl", "s/do.lua:5: ARGV token is declared twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := map[string]string{"2 queue": "3 queue", "2 ttl": "2 token"}[test[0]]
			files := fstest.MapFS{"s/do.lua": {Data: []byte(strings.Replace(head, test[0], to, 1))}}
			_, err := luascript.Compose(files, "s/do.lua")
			require.EqualError(t, err, test[1])
		})
	}
}

func TestMustCompose(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"do.lua": {Data: []byte(head + "return $f(1)")}}
	require.PanicsWithError(t, "do.lua:7: $f is not defined", func() { luascript.MustCompose(files, "do.lua") })

	files["do.lua"] = &fstest.MapFile{Data: []byte(head + "return 1")}
	source := luascript.MustCompose(files, "do.lua")
	require.Equal(t, "do.lua", source.File)
	require.Equal(t, "return 1", code(source.Text))
}
