package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// maxZip is the largest permitted package in bytes. Lambda starts small packages faster.
const maxZip = 5_000_000

// bootstrap is the name of the executable that the runtime provided.al2023 starts.
const bootstrap = "bootstrap"

// tags are build tags that omit unused code: Lambda's RPC mode, and HTTP/2, because every AWS API
// that the functions call supports HTTP/1.1.
const tags = "lambda.norpc,nethttpomithttp2"

func functions() []string { return []string{"dispatcher", "enqueue", "limit", "lock"} }

// compile builds one function for one processor architecture. It writes the executable to the path
// in the argument program.
type compile func(ctx context.Context, function, arch, program string) error

// compiler returns a compile function for the repository at root. It fixes or removes everything
// that could make two builds differ: paths, build IDs, version control metadata, and Go settings of
// the environment.
func compiler(root string) compile {
	return func(ctx context.Context, function, arch, program string) error {
		//nolint:gosec // the function names are constants
		command := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
			"-tags", tags, "-ldflags", "-s -w -buildid=", "-o", program, "./functions/"+function)
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
			"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("error building %s for %s: %w\n%s", function, arch, err, output)
		}
		return nil
	}
}

// packed is the deployment package of one function for one processor architecture.
type packed struct {
	function, arch string
	zip            []byte
	bill           []byte // the bill of materials
}

// path returns the package's file name, relative to the output folder, with the extension.
func (p packed) path(extension string) string {
	return path.Join(folderOf(p.arch), p.function+extension)
}

// folderOf returns the folder for packages of the architecture, relative to the output folder.
func folderOf(arch string) string {
	if arch == "arm64" {
		return "."
	}
	return arch
}

// digest returns the SHA-256 digest of the zip in hexadecimal.
func (p packed) digest() string { return hexDigest(p.zip) }

// packages are the deployment packages in order of architecture, then function.
type packages []packed

// pack compiles and packages every function for every architecture.
func pack(ctx context.Context, compile compile, arches []string, version string) (packages, error) {
	var out packages
	for _, arch := range arches {
		for _, function := range functions() {
			p, err := packOne(ctx, compile, function, arch, version)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func packOne(ctx context.Context, compile compile, function, arch, version string) (packed, error) {
	folder, err := os.MkdirTemp("", "sluice-package-")
	if err != nil {
		return packed{}, fmt.Errorf("error making a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()

	program := filepath.Join(folder, bootstrap)
	if err := compile(ctx, function, arch, program); err != nil {
		return packed{}, err
	}
	executable, err := os.ReadFile(program) //nolint:gosec // the file that was just compiled
	if err != nil {
		return packed{}, fmt.Errorf("error reading an executable: %w", err)
	}

	p := packed{function: function, arch: arch}
	if p.zip, err = zipped(executable); err != nil {
		return packed{}, fmt.Errorf("error zipping %s: %w", function, err)
	}
	if len(p.zip) > maxZip {
		return packed{}, fmt.Errorf("%s has %d bytes; the maximum is %d", p.path(".zip"), len(p.zip), maxZip)
	}
	p.bill, err = billOf(p, program, version)
	return p, err
}

// zipped returns a zip with the executable as its only file. The file's time is the earliest that
// the zip format can store, so that the time of the build does not change the zip.
func zipped(executable []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})

	earliest := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	header := &zip.FileHeader{Name: bootstrap, Method: zip.Deflate, Modified: earliest}
	header.SetMode(0o755)
	file, err := w.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(executable); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write writes the packages, their bills of materials and their digests into the output folder.
func (ps packages) write(folder string) error {
	var sums bytes.Buffer
	digests := make(map[string]map[string]string) // base64 digests, by architecture and then by function
	for _, p := range ps {
		if err := writeFile(folder, p.path(".zip"), p.zip); err != nil {
			return err
		}
		if err := writeFile(folder, p.path(".cdx.json"), p.bill); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", p.digest(), p.path(".zip"))
		if digests[p.arch] == nil {
			digests[p.arch] = make(map[string]string)
		}
		sum := sha256.Sum256(p.zip)
		digests[p.arch][p.function] = base64.StdEncoding.EncodeToString(sum[:])
	}

	for arch, byFunction := range digests {
		text, err := json.MarshalIndent(map[string]any{"zip_sha256": byFunction}, "", "  ")
		if err != nil {
			return fmt.Errorf("error encoding the digests: %w", err)
		}
		file := path.Join(folderOf(arch), "zip_sha256.tfvars.json")
		if err := writeFile(folder, file, append(text, '\n')); err != nil {
			return err
		}
	}
	return writeFile(folder, "SHA256SUMS", sums.Bytes())
}

func writeFile(folder, file string, data []byte) error {
	target := filepath.Join(folder, file)
	//nolint:gosec // a published file; everybody may read it
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("error making a folder: %w", err)
	}
	//nolint:gosec // a published file; everybody may read it
	if err := os.WriteFile(target, data, 0o644); err != nil {
		return fmt.Errorf("error writing %s: %w", file, err)
	}
	return nil
}
