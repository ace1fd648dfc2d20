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

// functionsMinor is the first minor version of OpenTofu and of Terraform that calls functions of
// providers.
const functionsMinor = 8

// play starts the stack and plays the demo on it; withoutTofu tells of policies with the command
// line.
func play(ctx context.Context, withoutTofu bool, out, errOut io.Writer) error {
	_, _ = fmt.Fprintln(out, "Starting Redis, SQS, DynamoDB and the four functions on this machine…")
	started := time.Now()
	s, err := stack.Start(ctx, stack.Config{
		APIAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Progress: func(what string) {
			_, _ = fmt.Fprintln(errOut, what)
		},
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "up after %.1f s: the API is at %s, Redis is %s\n", time.Since(started).Seconds(), s.APIURL,
		s.RedisKind)
	return errors.Join(playOn(ctx, s, withoutTofu, out, errOut), s.Close())
}

func playOn(ctx context.Context, s *stack.Stack, withoutTofu bool, out, errOut io.Writer) error {
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
		APIURL: s.APIURL, QueueURL: s.QueueURLs["orders"], SQS: s.SQS, StopRedis: s.StopRedis, StartRedis: s.StartRedis,
		Out: out, Color: isTerminal(out),
		Sluice: func(ctx context.Context, input string, args ...string) (string, error) {
			return commandLine(ctx, root, s.APIURL, input, args)
		},
	}
	if tool, err := tofu.Find(ctx, root, functionsMinor); err == nil && !withoutTofu {
		_, _ = fmt.Fprintf(errOut, "building the Terraform provider for %s %s (a minute, the first time)…\n", tool.Name,
			tool.Version)
		if cfg.Tofu, err = open(ctx, tool, root, dir, s.APIURL); err != nil {
			return err
		}
		cfg.ToolName = strings.ToLower(filepath.Base(tool.Path))
	}
	return demo.Run(ctx, cfg)
}

// open builds the provider, and makes a workspace in which it reaches the stack.
func open(ctx context.Context, tool tofu.Tool, root, dir, api string) (*tofu.Workspace, error) {
	provider, work := filepath.Join(dir, "provider"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(provider, 0o700), os.Mkdir(work, 0o700)); err != nil {
		return nil, fmt.Errorf("error making a folder for the demo: %w", err)
	}
	if err := tofu.BuildProvider(ctx, root, provider); err != nil {
		return nil, err
	}
	return tool.Open(work, provider, "SLUICE_ENDPOINT="+api, "SLUICE_AUTH=none")
}

// commandLine runs `sluice` from source.
func commandLine(ctx context.Context, root, api, input string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./cmd/sluice", "--endpoint", api, "--auth", "none"}, args...)...) //nolint:gosec // our own arguments
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = root, strings.NewReader(input), subprocess.Attr()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("error running sluice %v: %w\n%s", args, err, said)
	}
	return string(said), nil
}
