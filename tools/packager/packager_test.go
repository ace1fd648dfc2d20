package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny is a function that compiles in a second, and is made of one module besides the standard
// library.
const tiny = `package main

import "github.com/cespare/xxhash/v2"

func main() { println(xxhash.Sum64String("tiny")) }
`

// checkout is a repository with the function lock alone, in a folder of its own.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, name), text, 0o600))
	}
	folder := filepath.Join(root, "functions", "lock")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(tiny), 0o600))
	return root
}

// compiled stands for every function: the tiny one, compiled once.
func compiled(t *testing.T) build {
	t.Helper()
	program, err := builder(checkout(t))(t.Context(), "lock", runtime.GOARCH)
	require.NoError(t, err)
	return func(context.Context, string, string) ([]byte, error) { return program, nil }
}

func TestTwoCheckoutsGiveTheSameBytesWhateverAUsersSettingsAre(t *testing.T) {
	first, err := builder(checkout(t))(t.Context(), "lock", runtime.GOARCH)
	require.NoError(t, err)
	t.Setenv("GOFLAGS", "-race") // with which cgo would be needed, which is off
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	second, err := builder(checkout(t))(t.Context(), "lock", runtime.GOARCH)
	require.NoError(t, err)
	a, err := zipped(first)
	require.NoError(t, err)
	b, err := zipped(second)
	require.NoError(t, err)
	require.True(t, bytes.Equal(a, b), "two builds of the same source differ")
}

func TestAFunctionThatDoesNotCompileIsNamed(t *testing.T) {
	t.Parallel()
	_, err := builder("../..")(t.Context(), "nothing", runtime.GOARCH)
	require.ErrorContains(t, err, "error building nothing for "+runtime.GOARCH)
}

func TestAZipHoldsAnExecutableBootstrapAlone(t *testing.T) {
	t.Parallel()
	text, err := zipped([]byte("a program"))
	require.NoError(t, err)
	r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Len(t, r.File, 1)
	f := r.File[0]
	require.Equal(t, "bootstrap", f.Name)
	require.Equal(t, os.FileMode(0o755), f.Mode())
	require.Equal(t, 1980, f.Modified.Year(), "the time of the build must not be told")
	content, err := f.Open()
	require.NoError(t, err)
	program, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Equal(t, "a program", string(program))
}

func TestAZipThatIsTooBigIsRefused(t *testing.T) {
	t.Parallel()
	program, err := compiled(t)(t.Context(), "", "")
	require.NoError(t, err)
	noise := make([]byte, maxZip) // which nothing makes smaller
	_, err = rand.Read(noise)
	require.NoError(t, err)
	big := append(bytes.Clone(program), noise...)
	_, err = pack(t.Context(), func(context.Context, string, string) ([]byte, error) {
		return big, nil
	}, []string{"arm64"})
	require.ErrorContains(t, err, "dispatcher.zip has")
}

func TestEveryZipHasItsSumAndItsDigestForTerraform(t *testing.T) {
	t.Parallel()
	release, err := pack(t.Context(), compiled(t), []string{"arm64", "amd64"})
	require.NoError(t, err)
	out := t.TempDir()
	require.NoError(t, release.write(out, "1.2.3"))
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	var files []string
	for line := range strings.Lines(string(sums)) {
		sum, file, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, line)
		text, err := os.ReadFile(filepath.Join(out, file))
		require.NoError(t, err)
		want := sha256.Sum256(text)
		require.Equal(t, hex.EncodeToString(want[:]), sum, file)
		files = append(files, file)

		var digests struct {
			Zips map[string]string `json:"zip_sha256"`
		}
		text, err = os.ReadFile(filepath.Join(out, filepath.Dir(file), "zip_sha256.tfvars.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &digests))
		require.Equal(t, base64.StdEncoding.EncodeToString(want[:]),
			digests.Zips[strings.TrimSuffix(filepath.Base(file), ".zip")], file)
	}
	require.Equal(t, []string{
		"dispatcher.zip", "enqueue.zip", "limit.zip", "lock.zip",
		"amd64/dispatcher.zip", "amd64/enqueue.zip", "amd64/limit.zip", "amd64/lock.zip",
	}, files)
}

func TestTheBillNamesEveryModuleOnceAndEveryZipsParts(t *testing.T) {
	t.Parallel()
	release, err := pack(t.Context(), compiled(t), []string{"arm64"})
	require.NoError(t, err)
	bill := release.bom("1.2.3")
	require.Equal(t, bill, release.bom("1.2.3"), "the bill must be the same each time")
	require.NotEqual(t, bill.Serial, release.bom("1.2.4").Serial)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, bill.Serial)

	refs := map[string]component{bill.Metadata.Component.Ref: bill.Metadata.Component}
	for _, c := range bill.Components {
		require.NotContains(t, refs, c.Ref, "listed twice")
		refs[c.Ref] = c
	}
	require.Contains(t, refs, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"))
	var found bool
	for ref, c := range refs {
		found = found || strings.HasPrefix(ref, "pkg:golang/github.com/cespare/xxhash/v2@v")
		if c.Type == "library" && c.Name != "std" {
			require.NotEmpty(t, c.Properties, "%s lacks the sum by which the Go toolchain verified it", ref)
		}
	}
	require.True(t, found, "what the program is made of is missing")
	require.Len(t, bill.Dependencies, 1+len(functions()))
	for _, d := range bill.Dependencies {
		require.Contains(t, refs, d.Ref)
		require.NotEmpty(t, d.DependsOn, d.Ref)
		for _, on := range d.DependsOn {
			require.Contains(t, refs, on)
		}
	}
}
