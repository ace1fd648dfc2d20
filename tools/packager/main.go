// Packager builds the deployment packages of the functions. The same commit and Go release produce
// the same bytes on every machine.
//
//	make package
//
// It writes lock.zip, enqueue.zip, dispatcher.zip and limit.zip for arm64 into the output folder
// and the packages for x86_64 into its subfolder amd64. Next to each package it writes a software
// bill of materials in CycloneDX 1.6 (lock.cdx.json). SHA256SUMS lists the digests of all packages.
// zip_sha256.tfvars.json in each folder contains the folder's digests as the Terraform module's
// input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "packager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("packager", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root `folder`")
	out := flags.String("out", "dist", "the output `folder`")
	arches := flags.String("arch", "arm64,amd64", "comma-separated processor `architectures`, named as in GOARCH")
	version := flags.String("version", "", "the `version` in the bills of materials (default: from git describe)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		*version = describe(ctx, *root)
	}

	packages, err := pack(ctx, compiler(*root), strings.Split(*arches, ","), *version)
	if err != nil {
		return err
	}
	if err := packages.write(*out); err != nil {
		return err
	}

	var report strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&report, "%s  %4.2f MB  %s\n", p.digest(), float64(len(p.zip))/1e6, p.path(".zip"))
	}
	if _, err := io.WriteString(stdout, report.String()); err != nil {
		return fmt.Errorf("error printing the digests: %w", err)
	}
	return nil
}

// describe returns the output of git describe, or "unknown" outside a Git repository.
func describe(ctx context.Context, root string) string {
	command := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	command.Dir = root
	name, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
