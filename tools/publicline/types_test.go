package publicline

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const clientModule = "github.com/sluicehq/sluice/client"

// load returns the type information of packages. It reads this information from the export data
// that the compiler writes. The packages belong to the Go module in the folder dir.
func load(t *testing.T, dir string, paths ...string) []*types.Package {
	t.Helper()
	list := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)
	exports := make(map[string]string)
	for line := range strings.Lines(goIn(t, dir, list...)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}

	files := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	out := make([]*types.Package, len(paths))
	for i, path := range paths {
		p, err := files.Import(path)
		require.NoError(t, err)
		out[i] = p
	}
	return out
}

func TestExportedTypes(t *testing.T) {
	t.Parallel()
	w := &walker{t: t, seen: make(map[types.Type]bool)}
	paths := []string{clientModule, clientModule + "/consumer", clientModule + "/fence"}
	for _, p := range load(t, "../../client", paths...) {
		for _, name := range p.Scope().Names() {
			if object := p.Scope().Lookup(name); object.Exported() {
				w.walk(p.Name()+"."+name, object.Type())
			}
		}
	}
	require.Greater(t, len(w.seen), 100, "the walk must reach the client's types")
}

// walker visits every type that is reachable from an exported identifier through exported fields
// and methods, parameters and results.
type walker struct {
	t    *testing.T
	seen map[types.Type]bool
}

func (w *walker) walk(from string, typ types.Type) {
	if w.seen[typ] {
		return
	}
	w.seen[typ] = true

	switch typ := typ.(type) {
	case *types.Alias:
		w.named(from, typ.Obj(), typ.Rhs())
	case *types.Named:
		w.named(from, typ.Obj(), typ.Underlying())
		if inClient(typ.Obj().Pkg()) {
			for m := range typ.Methods() {
				if m.Exported() {
					w.walk(from+"."+m.Name(), m.Type())
				}
			}
		}
		for argument := range typ.TypeArgs().Types() {
			w.walk(from, argument)
		}
	case *types.Struct:
		for field := range typ.Fields() {
			if field.Exported() || field.Embedded() {
				w.walk(from+"."+field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for m := range typ.Methods() {
			w.walk(from+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		w.tuple(from, typ.Params())
		w.tuple(from, typ.Results())
	case *types.Map:
		w.walk(from, typ.Key())
		w.walk(from, typ.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walk(from, typ.Elem())
	}
}

func (w *walker) tuple(from string, tuple *types.Tuple) {
	for v := range tuple.Variables() {
		w.walk(from, v.Type())
	}
}

// named checks that the package of a type is allowed. It visits the underlying type only for types
// of the client.
func (w *walker) named(from string, object *types.TypeName, underlying types.Type) {
	p := object.Pkg()
	if !allowed(p) {
		w.t.Errorf("%s refers to %s.%s", from, p.Path(), object.Name())
	}
	if inClient(p) {
		w.walk(from, underlying)
	}
}

func inClient(p *types.Package) bool { return p != nil && in(p.Path(), clientModule) }

// allowed reports whether a package is part of the client, the standard library or the AWS SDK.
func allowed(p *types.Package) bool {
	if p == nil { // predeclared
		return true
	}
	first, _, _ := strings.Cut(p.Path(), "/")
	return inClient(p) || !strings.Contains(first, ".") || strings.HasPrefix(p.Path(), "github.com/aws/aws-sdk-go-v2/")
}

func in(path, module string) bool { return path == module || strings.HasPrefix(path, module+"/") }
