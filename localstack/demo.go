package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/localstack/demo"
	"github.com/sluicehq/sluice/localstack/lambdaproc"
	"github.com/sluicehq/sluice/localstack/stack"
	"github.com/sluicehq/sluice/localstack/subprocess"
	"github.com/sluicehq/sluice/localstack/tofu"
)

// functionsMinor is the required minor version. OpenTofu and Terraform support provider functions
// since version 1.8.
const functionsMinor = 8

// runDemo starts the system, runs the demo and stops the system.
func runDemo(ctx context.Context, withoutTofu bool, out, errOut io.Writer) error {
	_, _ = fmt.Fprintln(out, "Starting Redis, SQS, DynamoDB and the four functions on this machine…")
	started := time.Now()
	s, err := stack.Start(ctx, stack.Config{
		APIAddr:  "127.0.0.1:0",
		AWSAddr:  "127.0.0.1:0",
		Progress: func(step string) { _, _ = fmt.Fprintln(errOut, step) },
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "up after %.1f s: the API is at %s, Redis is %s\n", time.Since(started).Seconds(), s.APIURL,
		s.RedisKind)
	return errors.Join(demoOn(ctx, s, withoutTofu, out, errOut), s.Close())
}

// demoOn runs the demo on a running system. It manages policies with OpenTofu or Terraform if one
// is installed, and with the command line otherwise.
func demoOn(ctx context.Context, s *stack.Stack, withoutTofu bool, out, errOut io.Writer) error {
	root, err := lambdaproc.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return fmt.Errorf("error making a folder for the demo: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	cfg := demo.Config{
		APIURL:     s.APIURL,
		QueueURL:   s.QueueURLs["orders"],
		SQS:        s.SQS,
		StopRedis:  s.StopRedis,
		StartRedis: s.StartRedis,
		Out:        out,
		Color:      isTerminal(out),
		Sluice: func(ctx context.Context, input string, args ...string) (string, error) {
			return runSluice(ctx, root, s.APIURL, input, args)
		},
	}
	if tool, err := tofu.Find(ctx, root, functionsMinor); err == nil && !withoutTofu {
		_, _ = fmt.Fprintf(errOut, "building the Terraform provider for %s %s (a minute the first time)…\n", tool.Name,
			tool.Version)
		if cfg.Tofu, err = openWorkspace(ctx, tool, root, dir, s.APIURL); err != nil {
			return err
		}
		cfg.ToolName = strings.ToLower(filepath.Base(tool.Path))
	}
	return demo.Run(ctx, cfg)
}

// openWorkspace builds the provider and creates a workspace in which the provider calls the API at
// the given URL.
func openWorkspace(ctx context.Context, tool tofu.Tool, root, dir, api string) (*tofu.Workspace, error) {
	provider, work := filepath.Join(dir, "provider"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(provider, 0o700), os.Mkdir(work, 0o700)); err != nil {
		return nil, fmt.Errorf("error making a folder for the demo: %w", err)
	}
	if err := tofu.BuildProvider(ctx, root, provider); err != nil {
		return nil, err
	}
	return tool.Open(work, provider, "SLUICE_ENDPOINT="+api, "SLUICE_AUTH=none")
}

// runSluice compiles and runs the sluice command line, with input as its standard input.
func runSluice(ctx context.Context, root, api, input string, args []string) (string, error) {
	args = append([]string{"run", "./cmd/sluice", "--endpoint", api, "--auth", "none"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = root, strings.NewReader(input), subprocess.Attr()
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("error running go %v: %w\n%s", args, err, output)
	}
	return string(output), nil
}
