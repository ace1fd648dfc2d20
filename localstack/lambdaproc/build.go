// Package lambdaproc builds the functions from source and runs them as processes that poll a Lambda
// Runtime API.
package lambdaproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// rootModule is the first line of the go.mod at the repository's root. Nested modules have
// different names.
const rootModule = "module github.com/sluicehq/sluice\n"

// Root returns the root of the repository: the folder at or above the working directory whose
// go.mod declares the root module.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("error finding the repository: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // a file of the repository
		if err == nil && strings.HasPrefix(string(text), rootModule) {
			return dir, nil
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside the sluice repository; run this inside it")
		}
		dir = parent
	}
}

// Build compiles main packages, such as "./functions/...", with the build tags of a deployment and
// copies the binaries to dir. Each binary has the name of its folder.
//
// It keeps the binaries in .cache, so that unchanged binaries are not linked again. A file lock
// serializes concurrent builds.
func Build(ctx context.Context, root, dir string, packages ...string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("go is not on the PATH; install Go 1.26 or later")
	}
	kept := filepath.Join(root, ".cache", "functions")
	for _, d := range []string{kept, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil { //nolint:gosec // everybody may run the binaries
			return fmt.Errorf("error making the folder for the functions: %w", err)
		}
	}
	unlock, err := lockBuild(filepath.Join(kept, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := compile(ctx, root, kept, packages); err != nil {
		return err
	}
	return copyBinaries(kept, dir)
}

func compile(ctx context.Context, root, dir string, packages []string) error {
	out := dir + string(filepath.Separator)
	args := append([]string{"build", "-tags", "lambda.norpc,nethttpomithttp2", "-o", out}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	cmd.Dir = root
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("error building the functions: %w\n%s", err, output.Bytes())
	}
	return nil
}

// lockBuild waits until no other process holds the file lock at path, and acquires it.
func lockBuild(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own path
	if err != nil {
		return nil, fmt.Errorf("error locking the build: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("error locking the build: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing the file releases the lock
}

func copyBinaries(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("error reading the functions: %w", err)
	}
	for _, e := range entries {
		if e.Name() == ".lock" {
			continue
		}
		if err := copyBinary(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return fmt.Errorf("error copying a function: %w", err)
		}
	}
	return nil
}

func copyBinary(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // our own path
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // everybody may run it
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
