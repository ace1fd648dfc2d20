// Package tofu runs OpenTofu or Terraform with the provider of this repository.
package tofu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNotFound means that no suitable tool is installed.
var ErrNotFound = errors.New("neither tofu nor terraform is installed in a recent version; " +
	"run make tofu, which builds OpenTofu once in some minutes, or install it")

// Tool is a program that applies Terraform configurations.
type Tool struct {
	// Path is the path of the program.
	Path string
	// Name is "OpenTofu" or "Terraform".
	Name string
	// Version is a version such as "1.12.6".
	Version string
}

// Host returns the default provider registry of the tool.
func (t Tool) Host() string {
	if t.Name == "OpenTofu" {
		return "registry.opentofu.org"
	}
	return "registry.terraform.io"
}

// Find returns the first tool of version 1.minor or later among tofu on the PATH, the one that
// `make tofu` built in root, and terraform on the PATH. Errors: [ErrNotFound].
func Find(ctx context.Context, root string, minor int) (Tool, error) {
	for _, candidate := range []string{"tofu", filepath.Join(root, ".cache", "bin", "tofu"), "terraform"} {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		t, err := inspect(ctx, path)
		if err == nil && t.minor() >= minor {
			return t, nil
		}
	}
	return Tool{}, ErrNotFound
}

func inspect(ctx context.Context, path string) (Tool, error) {
	cmd := exec.CommandContext(ctx, path, "version", "-json")
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		return Tool{}, fmt.Errorf("error getting the version of %s: %w", path, err)
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return Tool{}, fmt.Errorf("error reading the version of %s: %w", path, err)
	}
	t := Tool{Path: path, Name: "Terraform", Version: answer.Version}
	// Both programs call it terraform_version. Only the text form of the version has the name.
	cmd = exec.CommandContext(ctx, path, "version")
	cmd.Env = environment()
	if text, err := cmd.Output(); err == nil && strings.Contains(string(text), "OpenTofu") {
		t.Name = "OpenTofu"
	}
	return t, nil
}

// minor returns the minor version of a version 1, and 0 otherwise.
func (t Tool) minor() int {
	parts := strings.Split(t.Version, ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

// environment returns the environment of this process without the variables that change how the
// tool runs, and with more variables.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TF_") && !strings.HasPrefix(v, "SLUICE_") {
			env = append(env, v)
		}
	}
	return append(append(env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"), more...)
}
