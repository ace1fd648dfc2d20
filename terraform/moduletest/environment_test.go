package moduletest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lambda are the variables that Lambda sets itself; AWS_ENDPOINT_URL is for a local AWS.
var lambda = []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_ENDPOINT_URL"}

// reader follows getenv through the code: from a function's run into everything that getenv is
// passed on to.
type reader struct {
	t     *testing.T
	found map[string]bool
	seen  map[string]bool
}

var variable = regexp.MustCompile(`^"((?:SLUICE|AWS)_[A-Z0-9_]+)"$`)

// follow notes the variables that a function of a package folder names, and goes on where it passes
// getenv.
func (r *reader) follow(folder, function string) {
	if r.seen[folder+"."+function] {
		return
	}
	r.seen[folder+"."+function] = true
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(r.t, err)
	var declared bool
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(r.t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
				declared = true
				ast.Inspect(f.Body, func(n ast.Node) bool { r.visit(n, folder, file); return true })
			}
		}
	}
	require.True(r.t, declared, "%s has no function %s", folder, function)
}

func (r *reader) visit(n ast.Node, folder string, file *ast.File) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if m := variable.FindStringSubmatch(n.Value); m != nil {
			r.found[m[1]] = true
		}
	case *ast.CallExpr:
		passes := slices.ContainsFunc(n.Args, func(a ast.Expr) bool {
			i, ok := a.(*ast.Ident)
			return ok && i.Name == "getenv"
		})
		if !passes {
			return
		}
		switch called := n.Fun.(type) {
		case *ast.Ident:
			r.follow(folder, called.Name)
		case *ast.SelectorExpr:
			name := called.X.(*ast.Ident).Name
			for _, i := range file.Imports {
				path := strings.Trim(i.Path.Value, `"`)
				if local, ok := strings.CutPrefix(path, "github.com/sluicehq/sluice/"); ok &&
					(i.Name != nil && i.Name.Name == name || filepath.Base(path) == name) {
					r.follow(filepath.Join(root, local), called.Sel.Name)
				}
			}
		}
	}
}

// variablesOf are the variables that a function's code reads.
func variablesOf(t *testing.T, function string) []string {
	t.Helper()
	r := &reader{t: t, found: make(map[string]bool), seen: make(map[string]bool)}
	r.follow(filepath.Join(root, "functions", function), "run")
	return slices.Sorted(maps.Keys(r.found))
}

// given are the variables that the module may set for a function, in one configuration or another.
func given(t *testing.T, function string) []string {
	t.Helper()
	const names = `(?m)\b(SLUICE_[A-Z0-9_]+)\s+=`
	text := module(t, "functions.tf")
	own := block(t, text, `module "`+function+`" {`)
	out := matches(own, names)
	require.Contains(t, own, "local.environment")
	out = append(out, matches(block(t, text, "  environment = {"), names)...)
	if strings.Contains(own, "local.queue_environment") {
		out = append(out, matches(block(t, text, "  queue_environment = {"), names)...)
	}
	slices.Sort(out)
	return out
}

func TestEachFunctionIsGivenTheVariablesThatItReadsAndNoOthers(t *testing.T) {
	t.Parallel()
	functions, err := os.ReadDir(filepath.Join(root, "functions"))
	require.NoError(t, err)
	require.Len(t, functions, 4)
	for _, f := range functions {
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			reads := slices.DeleteFunc(variablesOf(t, f.Name()), func(name string) bool {
				return slices.Contains(lambda, name)
			})
			require.Contains(t, reads, "SLUICE_REDIS_URL", "the test has lost the thread")
			require.Equal(t, reads, given(t, f.Name()))
		})
	}
}
