package tofu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluicehq/sluice/localstack/subprocess"
)

// BuildProvider builds the provider of the repository at root into dir, for [Tool.Open].
func BuildProvider(ctx context.Context, root, dir string) error {
	binary := filepath.Join(dir, "terraform-provider-sluice")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".") //nolint:gosec // the path is the caller's
	cmd.Dir = filepath.Join(root, "terraform", "provider")            // a separate Go module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("error building the provider: %w\n%s", err, out)
	}
	return nil
}

// Workspace is a folder with a Terraform configuration and its state.
type Workspace struct {
	Dir string

	tool Tool
	env  []string
}

// Open creates a workspace in dir. The parameter provider is the folder into which [BuildProvider]
// built the provider. The workspace uses this binary, so it downloads nothing and does not need
// `init`. The parameter env lists additional environment variables, "NAME=value".
func (t Tool) Open(dir, provider string, env ...string) (*Workspace, error) {
	config := filepath.Join(dir, "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n",
		"sluicehq/sluice", provider)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("error writing the configuration of %s: %w", t.Name, err)
	}
	return &Workspace{Dir: dir, tool: t, env: environment(append(env, "TF_CLI_CONFIG_FILE="+config)...)}, nil
}

// Write writes the configuration of the workspace, main.tf.
func (w *Workspace) Write(configuration string) error {
	if err := os.WriteFile(filepath.Join(w.Dir, "main.tf"), []byte(configuration), 0o600); err != nil {
		return fmt.Errorf("error writing the configuration: %w", err)
	}
	return nil
}

// Run runs the tool in the workspace and returns its output. The tool is killed when ctx ends.
func (w *Workspace) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.tool.Path, args...) //nolint:gosec // the tool that Find found
	cmd.Dir, cmd.Env, cmd.SysProcAttr = w.Dir, w.env, subprocess.Attr()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("error running %s %v: %w\n%s", w.tool.Name, args, err, out)
	}
	return string(out), nil
}
