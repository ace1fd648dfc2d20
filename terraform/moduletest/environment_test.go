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

// lambda lists the variables that Lambda sets, and AWS_ENDPOINT_URL, which the local stack sets.
var lambda = []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_ENDPOINT_URL"}

// startup is the folder of the package that reads the environment.
var startup = filepath.Join(root, "shared", "startup")

// reader finds the environment variables that a Lambda function reads. It starts in two Go
// functions: the function named build in the Lambda function's package, and startup.NewEnv. From
// there it follows calls of methods of startup.Env, and calls that pass a startup.Env or the
// function getenv as an argument.
type reader struct {
	t     *testing.T
	found map[string]bool
	seen  map[string]bool
}

var variable = regexp.MustCompile(`^"((?:SLUICE|AWS)_[A-Z0-9_]+)"$`)

// follow records the variables in the body of a Go function or method, and follows the body's
// calls. folder is the function's package folder.
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

// visit records n if it is a string literal with the name of an environment variable, and follows n
// if it is a call that passes the environment.
func (r *reader) visit(n ast.Node, folder string, file *ast.File) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if m := variable.FindStringSubmatch(n.Value); m != nil {
			r.found[m[1]] = true
		}
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if ok && isEnv(method.X, folder) {
			if method.Sel.Name != "getenv" {
				r.follow(startup, method.Sel.Name)
			}
			return
		}
		if slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return isEnv(a, folder) || isGetenv(a) }) {
			r.followCall(n, folder, file)
		}
	}
}

// isEnv reports whether an expression is a variable of type startup.Env. It checks only the name:
// the code names such a variable env, or e in the methods of package startup.
func isEnv(x ast.Expr, folder string) bool {
	name, ok := x.(*ast.Ident)
	return ok && (name.Name == "env" || name.Name == "e" && folder == startup)
}

// isGetenv reports whether an expression is the function getenv or the field e.getenv.
func isGetenv(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "getenv"
	case *ast.SelectorExpr:
		return x.Sel.Name == "getenv"
	default:
		return false
	}
}

// followCall follows a call of a function in the same folder or in another package of the Go
// module.
func (r *reader) followCall(n *ast.CallExpr, folder string, file *ast.File) {
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

// variablesOf returns the variables that the code of a Lambda function reads.
func variablesOf(t *testing.T, function string) []string {
	t.Helper()
	r := &reader{t: t, found: make(map[string]bool), seen: make(map[string]bool)}
	r.follow(startup, "NewEnv")
	r.follow(filepath.Join(root, "functions", function), "build")
	return slices.Sorted(maps.Keys(r.found))
}

// given returns all variables that the Terraform module can set for a Lambda function.
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

// TestEnvironment checks that the Terraform module sets exactly the variables that each Lambda
// function reads.
func TestEnvironment(t *testing.T) {
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
			require.Contains(t, reads, "SLUICE_REDIS_URL", "the test did not find the function's environment")
			require.Equal(t, reads, given(t, f.Name()))
		})
	}
}
