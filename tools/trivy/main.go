// Command trivy looks through Terraform configurations with the checks of Trivy: what `trivy
// config` does, without the rest of Trivy, which takes minutes to build. Exceptions stand next to
// what they are about: "trivy:ignore".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/aquasecurity/trivy/pkg/iac/rego"
	"github.com/aquasecurity/trivy/pkg/iac/scan"
	"github.com/aquasecurity/trivy/pkg/iac/scanners/terraform"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trivy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folders []string) error {
	if len(folders) == 0 {
		return errors.New("name the folders to look through")
	}
	checked, failed := 0, 0
	for _, folder := range folders {
		scanner := terraform.New(rego.WithEmbeddedPolicies(true), rego.WithEmbeddedLibraries(true),
			terraform.ScannerWithAllDirectories(true))
		results, err := scanner.ScanFS(ctx, os.DirFS(folder), ".")
		if err != nil {
			return fmt.Errorf("error looking through %s: %w", folder, err)
		}
		for _, r := range results {
			checked++
			if r.Status() == scan.StatusFailed {
				failed++
				report(folder, r)
			}
		}
	}
	if checked == 0 {
		return errors.New("no check applied to anything: are these folders of Terraform?")
	}
	if failed > 0 {
		return fmt.Errorf("%d findings", failed)
	}
	fmt.Printf("trivy: %d results, none of them a finding\n", checked)
	return nil
}

func report(folder string, r scan.Result) {
	where := r.Range()
	fmt.Printf("%s %s: %s\n  %s/%s:%d-%d\n  %s\n", r.Severity(),
		slices.Concat(r.Rule().Aliases, []string{r.Rule().ID})[0], r.Description(),
		folder, where.GetFilename(), where.GetStartLine(), where.GetEndLine(), r.Rule().Links)
}
