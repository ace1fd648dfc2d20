package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// maxZip is what a zip may weigh: a small one starts sooner.
const maxZip = 5_000_000

func functions() []string { return []string{"dispatcher", "enqueue", "limit", "lock"} }

// build compiles one function for one processor, and returns the program.
type build func(ctx context.Context, function, arch string) ([]byte, error)

// builder compiles from the repository at root. Whatever would make two builds differ is pinned:
// paths, build ids, the state of the work tree, and the settings that a user may have in the
// environment.
func builder(root string) build {
	return func(ctx context.Context, function, arch string) ([]byte, error) {
		folder, err := os.MkdirTemp("", "sluice-package-")
		if err != nil {
			return nil, fmt.Errorf("error making a folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		program := filepath.Join(folder, "bootstrap")
		//nolint:gosec // the names are functions()
		command := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-tags",
			"lambda.norpc",
			"-ldflags", "-s -w -buildid=", "-o", program, "./functions/"+function)
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
			"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
		if said, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("error building %s for %s: %w\n%s", function, arch, err, said)
		}
		text, err := os.ReadFile(program) //nolint:gosec // the one that was just built
		if err != nil {
			return nil, fmt.Errorf("error reading a program: %w", err)
		}
		return text, nil
	}
}

// packed is one zip.
type packed struct {
	function, arch string
	zip            []byte
	info           *buildinfo.BuildInfo
}

// path is where the zip goes, below the folder for all.
func (p packed) path() string {
	if p.arch == "arm64" {
		return p.function + ".zip"
	}
	return path.Join(p.arch, p.function+".zip")
}

func (p packed) digest() string {
	sum := sha256.Sum256(p.zip)
	return hex.EncodeToString(sum[:])
}

// release is all zips, in order.
type release []packed

func pack(ctx context.Context, compile build, arches []string) (release, error) {
	var out release
	for _, arch := range arches {
		for _, function := range functions() {
			program, err := compile(ctx, function, arch)
			if err != nil {
				return nil, err
			}
			text, err := zipped(program)
			if err != nil {
				return nil, err
			}
			p := packed{function: function, arch: arch, zip: text}
			if len(text) > maxZip {
				return nil, fmt.Errorf("%s has %d bytes: the most is %d", p.path(), len(text), maxZip)
			}
			if p.info, err = buildinfo.Read(bytes.NewReader(program)); err != nil {
				return nil, fmt.Errorf("error reading what %s is made of: %w", function, err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// zipped is a zip with the program alone, as provided.al2023 wants it: an executable bootstrap. Its
// time is the earliest that a zip can tell.
func zipped(program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate,
		Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	entry, err := w.CreateHeader(header)
	if err != nil {
		return nil, fmt.Errorf("error zipping: %w", err)
	}
	if _, err := entry.Write(program); err != nil {
		return nil, fmt.Errorf("error zipping: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("error zipping: %w", err)
	}
	return out.Bytes(), nil
}

// write puts the zips and what describes them into the folder.
func (r release) write(folder, version string) error {
	var sums bytes.Buffer
	digests := make(map[string]map[string]string) // by processor and function
	for _, p := range r {
		if err := put(folder, p.path(), p.zip); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", p.digest(), p.path())
		if digests[p.arch] == nil {
			digests[p.arch] = make(map[string]string)
		}
		sum := sha256.Sum256(p.zip)
		digests[p.arch][p.function] = base64.StdEncoding.EncodeToString(sum[:])
	}
	for arch, byFunction := range digests {
		file := filepath.Join(filepath.Dir(packed{arch: arch}.path()), "zip_sha256.tfvars.json")
		if err := putJSON(folder, file, map[string]any{"zip_sha256": byFunction}); err != nil {
			return err
		}
	}
	if err := put(folder, "SHA256SUMS", sums.Bytes()); err != nil {
		return err
	}
	return putJSON(folder, "sbom.cdx.json", r.bom(version))
}

func putJSON(folder, file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("error encoding %s: %w", file, err)
	}
	return put(folder, file, append(text, '\n'))
}

func put(folder, file string, text []byte) error {
	target := filepath.Join(folder, file)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // what is published may be read
		return fmt.Errorf("error making a folder: %w", err)
	}
	if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // what is published may be read
		return fmt.Errorf("error writing: %w", err)
	}
	return nil
}

// modules are what all programs together are made of, in order.
func (r release) modules() []module {
	var out []module
	for _, p := range r {
		out = append(out, modulesOf(p.info)...)
	}
	slices.SortFunc(out, func(a, b module) int { return cmp.Compare(a.ref(), b.ref()) })
	return slices.CompactFunc(out, func(a, b module) bool { return a.ref() == b.ref() })
}
