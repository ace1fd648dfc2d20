// Trivy checks Terraform configurations like `trivy config`. It omits the rest of Trivy, which
// takes minutes to build. A comment "trivy:ignore" next to a resource suppresses a finding.
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
		return errors.New("name the folders to check")
	}
	checked, failed := 0, 0
	for _, folder := range folders {
		scanner := terraform.New(rego.WithEmbeddedPolicies(true), rego.WithEmbeddedLibraries(true),
			terraform.ScannerWithAllDirectories(true))
		results, err := scanner.ScanFS(ctx, os.DirFS(folder), ".")
		if err != nil {
			return fmt.Errorf("error checking %s: %w", folder, err)
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
		return errors.New("no check applied; the folders contain no Terraform configuration")
	}
	if failed > 0 {
		return fmt.Errorf("%d findings", failed)
	}
	fmt.Printf("trivy: %d results, no findings\n", checked)
	return nil
}

// report prints a finding.
func report(folder string, r scan.Result) {
	where := r.Range()
	fmt.Printf("%s %s: %s\n  %s/%s:%d-%d\n  %s\n", r.Severity(),
		slices.Concat(r.Rule().Aliases, []string{r.Rule().ID})[0], r.Description(),
		folder, where.GetFilename(), where.GetStartLine(), where.GetEndLine(), r.Rule().Links)
}
