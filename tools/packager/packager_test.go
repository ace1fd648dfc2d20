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

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// tiny is the source code of a program that compiles in a second. It depends on one module in
// addition to the standard library.
const tiny = `package main

import "github.com/cespare/xxhash/v2"

func main() { println(xxhash.Sum64String("tiny")) }
`

// checkout returns a folder with a minimal repository: the module files, and tiny as the function
// "lock".
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write := func(name string, text []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), text, 0o600))
	}
	for _, name := range []string{"go.mod", "go.sum", "client/go.mod"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		require.NoError(t, err)
		write(name, text)
	}
	write("functions/lock/main.go", []byte(tiny))
	return root
}

// build compiles the function "lock" of a new checkout and returns the executable.
func build(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), bootstrap)
	require.NoError(t, compiler(checkout(t))(t.Context(), "lock", runtime.GOARCH, program))
	executable, err := os.ReadFile(program)
	require.NoError(t, err)
	return executable
}

// fixed returns a compile function that writes the same executable for every function.
func fixed(executable []byte) compile {
	return func(_ context.Context, _, _, program string) error {
		return os.WriteFile(program, executable, 0o700) //nolint:gosec // an executable
	}
}

func TestCompiler(t *testing.T) {
	t.Run("two checkouts produce the same bytes under any Go settings", func(t *testing.T) {
		first := build(t)
		t.Setenv("GOFLAGS", "-race") // -race requires cgo, which the build disables
		t.Setenv("GOAMD64", "v3")
		t.Setenv("CGO_ENABLED", "1")
		second := build(t)
		a, err := zipped(first)
		require.NoError(t, err)
		b, err := zipped(second)
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), "two builds of the same source differ")
	})
	t.Run("an error names the function that does not compile", func(t *testing.T) {
		t.Parallel()
		err := compiler("../..")(t.Context(), "nothing", runtime.GOARCH, filepath.Join(t.TempDir(), bootstrap))
		require.ErrorContains(t, err, "error building nothing for "+runtime.GOARCH)
	})
}

func TestZipped(t *testing.T) {
	t.Parallel()
	t.Run("holds only an executable named bootstrap", func(t *testing.T) {
		t.Parallel()
		data, err := zipped([]byte("an executable"))
		require.NoError(t, err)
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.Len(t, r.File, 1)
		f := r.File[0]
		require.Equal(t, "bootstrap", f.Name)
		require.Equal(t, os.FileMode(0o755), f.Mode())
		require.Equal(t, 1980, f.Modified.Year(), "the zip must not contain the time of the build")
		content, err := f.Open()
		require.NoError(t, err)
		executable, err := io.ReadAll(content)
		require.NoError(t, err)
		require.Equal(t, "an executable", string(executable))
	})
}

func TestPack(t *testing.T) {
	t.Parallel()
	executable := build(t)
	t.Run("refuses a package above the maximum size", func(t *testing.T) {
		t.Parallel()
		noise := make([]byte, maxZip) // random bytes do not compress
		_, err := rand.Read(noise)
		require.NoError(t, err)
		big := append(bytes.Clone(executable), noise...)
		_, err = pack(t.Context(), fixed(big), []string{"arm64"}, "1.2.3")
		require.ErrorContains(t, err, "dispatcher.zip has")
	})
	t.Run("writes each package with its checksum and its digest for Terraform", func(t *testing.T) {
		t.Parallel()
		packages, err := pack(t.Context(), fixed(executable), []string{"arm64", "amd64"}, "1.2.3")
		require.NoError(t, err)
		requireWritten(t, packages)
	})
	t.Run("lists every module with its checksum in the bill of materials", func(t *testing.T) {
		t.Parallel()
		packages, err := pack(t.Context(), fixed(executable), []string{"arm64"}, "1.2.3")
		require.NoError(t, err)
		require.Len(t, packages, len(functions()))
		for _, p := range packages {
			requireComplete(t, p)
		}
	})
	t.Run("writes the same bill of materials twice, and a different bill for a different version", func(t *testing.T) {
		t.Parallel()
		serials := make(map[string]bool)
		for _, version := range []string{"1.2.3", "1.2.4"} {
			first, err := pack(t.Context(), fixed(executable), []string{"arm64"}, version)
			require.NoError(t, err)
			second, err := pack(t.Context(), fixed(executable), []string{"arm64"}, version)
			require.NoError(t, err)
			for i := range first {
				require.Equal(t, string(first[i].bill), string(second[i].bill))
				serials[decode(t, first[i].bill).SerialNumber] = true
			}
		}
		require.Len(t, serials, 2*len(functions()), "each package of each version must have its own serial number")
	})
}

// requireWritten writes the packages for both architectures and compares the files with SHA256SUMS
// and the digests for Terraform.
func requireWritten(t *testing.T, packages packages) {
	t.Helper()
	out := t.TempDir()
	require.NoError(t, packages.write(out))
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	var files []string
	for line := range strings.Lines(string(sums)) {
		sum, file, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, line)
		data, err := os.ReadFile(filepath.Join(out, file))
		require.NoError(t, err)
		want := sha256.Sum256(data)
		require.Equal(t, hex.EncodeToString(want[:]), sum, file)
		require.FileExists(t, filepath.Join(out, strings.TrimSuffix(file, ".zip")+".cdx.json"))
		files = append(files, file)

		var digests struct {
			Zips map[string]string `json:"zip_sha256"`
		}
		data, err = os.ReadFile(filepath.Join(out, filepath.Dir(file), "zip_sha256.tfvars.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &digests))
		require.Equal(t, base64.StdEncoding.EncodeToString(want[:]),
			digests.Zips[strings.TrimSuffix(filepath.Base(file), ".zip")], file)
	}
	require.Equal(t, []string{
		"dispatcher.zip", "enqueue.zip", "limit.zip", "lock.zip",
		"amd64/dispatcher.zip", "amd64/enqueue.zip", "amd64/limit.zip", "amd64/lock.zip",
	}, files)
}

func decode(t *testing.T, bill []byte) *cdx.BOM {
	t.Helper()
	var out cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&out))
	return &out
}

// requireComplete checks that the bill names the package by its digest, lists each module once with
// the checksum from go.sum, and contains no time.
func requireComplete(t *testing.T, p packed) {
	t.Helper()
	bill := decode(t, p.bill)
	require.Equal(t, cdx.SpecVersion1_6, bill.SpecVersion)
	const serial = `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	require.Regexp(t, serial, bill.SerialNumber)
	require.Empty(t, bill.Metadata.Timestamp, "the bill must not contain the time of the build")
	main := bill.Metadata.Component
	require.Equal(t, p.function+".zip", main.Name)
	require.Equal(t, "1.2.3", main.Version)
	require.Equal(t, []cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.digest()}}, *main.Hashes)

	refs := map[string]bool{main.BOMRef: true}
	modules := make(map[string]cdx.Component)
	for _, c := range *bill.Components {
		require.NotContains(t, refs, c.BOMRef, "listed twice")
		refs[c.BOMRef] = true
		modules[c.Name] = c
		if c.Name != "std" {
			require.NotNil(t, c.Hashes, "%s lacks the checksum that go.sum records", c.Name)
		}
	}
	require.Contains(t, modules, "github.com/cespare/xxhash/v2")
	require.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), strings.TrimPrefix(modules["std"].Version, "go"))

	for _, d := range *bill.Dependencies {
		require.Contains(t, refs, d.Ref)
		if d.Ref == main.BOMRef {
			require.Len(t, *d.Dependencies, len(*bill.Components))
		}
	}
}
