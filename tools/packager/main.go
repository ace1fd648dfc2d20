// packager builds the functions' deployment zips: the same commit and Go release give the same
// bytes, wherever and whenever it runs.
//
//	go run ./tools/packager -out dist
//
// It writes lock.zip, enqueue.zip, dispatcher.zip and limit.zip for arm64 into the folder, those
// for x86_64 into its folder amd64, and beside them SHA256SUMS, a software bill of materials
// (sbom.cdx.json, CycloneDX 1.6), and for each processor zip_sha256.tfvars.json, the digests as the
// Terraform module takes them.
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
	root := flags.String("root", ".", "the repository")
	out := flags.String("out", "dist", "where the zips go")
	arches := flags.String("arch", "arm64,amd64", "processors, as Go names them")
	version := flags.String("version", "", "the version in the bill of materials; default: what git describes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		*version = describe(ctx, *root)
	}
	release, err := pack(ctx, builder(*root), strings.Split(*arches, ","))
	if err != nil {
		return err
	}
	if err := release.write(*out, *version); err != nil {
		return err
	}
	var report strings.Builder
	for _, p := range release {
		fmt.Fprintf(&report, "%s  %4.2f MB  %s\n", p.digest(), float64(len(p.zip))/1e6, p.path())
	}
	if _, err := io.WriteString(stdout, report.String()); err != nil {
		return fmt.Errorf("error reporting: %w", err)
	}
	return nil
}

// describe names the commit; "unknown" outside of a repository.
func describe(ctx context.Context, root string) string {
	command := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	command.Dir = root
	name, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
