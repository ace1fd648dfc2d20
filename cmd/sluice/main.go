// Command sluice runs commands under locks, pushes delayed jobs, checks rate limits and manages
// their policies. See docs/cli.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluicehq/sluice/cmd/sluice/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := cli.Program{
		Getenv: os.Getenv, Environ: os.Environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
