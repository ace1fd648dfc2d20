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
var ErrNotFound = errors.New("no recent version of tofu or terraform is installed; " +
	"install one, or run make tofu, which builds OpenTofu in a few minutes")

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

// Find returns the first tool whose version is 1.x, with x at least minor. It searches in this
// order: tofu on the PATH, the tofu that `make tofu` built in root, terraform on the PATH. Errors:
// [ErrNotFound].
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
	// Both programs name the JSON field terraform_version. Only the text output contains the
	// program's name.
	cmd = exec.CommandContext(ctx, path, "version")
	cmd.Env = environment()
	if text, err := cmd.Output(); err == nil && strings.Contains(string(text), "OpenTofu") {
		t.Name = "OpenTofu"
	}
	return t, nil
}

// minor returns the minor version of a 1.x version, and 0 for other versions.
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

// environment returns the environment of a tool: the environment of this process plus the given
// variables. It leaves out the TF_ and SLUICE_ variables of this process, which would change the
// tool's behaviour.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TF_") && !strings.HasPrefix(v, "SLUICE_") {
			env = append(env, v)
		}
	}
	return append(append(env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"), more...)
}
