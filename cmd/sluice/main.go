// The command sluice: locks around commands, delayed jobs, limits and policies, from a shell. See
// docs/cli.md.
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
	program := cli.Program{Getenv: os.Getenv, Environ: os.Environ, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
