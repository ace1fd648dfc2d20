// Package tofu runs OpenTofu, or Terraform, with the provider of this repository.
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

// ErrNotFound says that there is no tool that will do.
var ErrNotFound = errors.New("neither tofu nor terraform is here in a version that will do. Type: make tofu (builds OpenTofu once, some minutes), or install it")

// Tool is a program that applies Terraform configurations.
type Tool struct {
	Path string
	// Name is "OpenTofu" or "Terraform".
	Name string
	// Version is such as "1.12.6".
	Version string
}

// Host is the registry that the tool looks providers up at, unless their addresses name another.
func (t Tool) Host() string {
	if t.Name == "OpenTofu" {
		return "registry.opentofu.org"
	}
	return "registry.terraform.io"
}

// Find looks for a tool of a minor version of 1 at least as new, of either maker: tofu on the PATH,
// what `make tofu` has built under root, terraform on the PATH. Errors: [ErrNotFound].
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
		return Tool{}, fmt.Errorf("error asking %s for its version: %w", path, err)
	}
	var said struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return Tool{}, fmt.Errorf("error reading the version of %s: %w", path, err)
	}
	t := Tool{Path: path, Name: "Terraform", Version: said.Version}
	// Both call it terraform_version; only the text of the other form tells them apart.
	cmd = exec.CommandContext(ctx, path, "version")
	cmd.Env = environment()
	if text, err := cmd.Output(); err == nil && strings.Contains(string(text), "OpenTofu") {
		t.Name = "OpenTofu"
	}
	return t, nil
}

// minor is the second number of a version whose first is 1, else 0.
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

// environment is this process's, without what would change how the tool runs, and with further
// variables.
func environment(further ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TF_") && !strings.HasPrefix(v, "SLUICE_") {
			env = append(env, v)
		}
	}
	return append(append(env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"), further...)
}
