// Package lambdaproc builds the functions from source and runs them as real Lambda processes against a Runtime API.
package lambdaproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root finds the repository: the folder of the go.mod at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("error finding the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod at or above the working directory: run this inside the repository")
		}
		dir = parent
	}
}

// Build compiles main packages ("./functions/...") as they are deployed, and puts the binaries, named by their folders, into dir.
func Build(ctx context.Context, root, dir string, packages ...string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("go is not on the PATH; install Go 1.26 or later")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // binaries, for everybody to run
		return fmt.Errorf("error making the folder for the functions: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-tags", "lambda.norpc", "-o", dir + string(filepath.Separator)}, packages...)...) //nolint:gosec // our own arguments
	cmd.Dir = root
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("error building the functions: %w\n%s", err, output.Bytes())
	}
	return nil
}
