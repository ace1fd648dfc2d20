// Goreleaser checks release configurations with GoReleaser's configuration package. Unlike
// `goreleaser check`, it does not compute the defaults of publishers that Sluice does not use: they
// need most of GoReleaser, which takes minutes to build. The workflow on GitHub runs the complete
// `goreleaser check`.
//
//	cd tools/goreleaser && go run . -root ../.. FILE...
//
// It rejects a configuration that has an unknown field, refers to a build or a file that does not
// exist, or uses an ID twice.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "goreleaser:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("goreleaser", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root `folder`, from which goreleaser runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the configurations to check, relative to the root")
	}
	for _, file := range flags.Args() {
		project, err := config.Load(filepath.Join(*root, file))
		if err != nil {
			return fmt.Errorf("error reading %s: %w", file, err)
		}
		if err := check(project, *root); err != nil {
			return fmt.Errorf("%s is invalid:\n%w", file, err)
		}
		fmt.Println("goreleaser:", file, "is valid")
	}
	return nil
}

// check returns one joined error for all duplicate IDs in the configuration and all references to
// builds and files that do not exist.
func check(project config.Project, root string) error {
	var errs []error
	builds := make(map[string]bool)
	for _, b := range project.Builds {
		errs = append(errs, unique("build", b.ID, builds), found(root, filepath.Join(b.Dir, b.Main), "main.go"))
	}

	archives := make(map[string]bool)
	for _, a := range project.Archives {
		errs = append(errs, unique("archive", a.ID, archives), known("build", a.IDs, builds))
		for _, f := range a.Files {
			errs = append(errs, found(root, f.Source))
		}
	}

	sboms := make(map[string]bool)
	for _, s := range project.SBOMs {
		errs = append(errs, unique("sbom", s.ID, sboms), known("build", s.IDs, builds))
	}

	for _, f := range slices.Concat(project.Checksum.ExtraFiles, project.Release.ExtraFiles) {
		// The build writes the files in dist; all other files are in the repository.
		if !strings.HasPrefix(f.Glob, "dist/") {
			errs = append(errs, found(root, f.Glob))
		}
	}
	return errors.Join(errs...)
}

// unique adds the ID to ids. It returns an error if ids already contains the ID.
func unique(kind, id string, ids map[string]bool) error {
	if ids[id] {
		return fmt.Errorf("two parts of kind %s have the ID %q", kind, id)
	}
	ids[id] = true
	return nil
}

// known returns an error if one of the IDs is not in the given set.
func known(kind string, ids []string, exist map[string]bool) error {
	for _, id := range ids {
		if !exist[id] {
			return fmt.Errorf("there is no %s with the ID %q", kind, id)
		}
	}
	return nil
}

// found joins the elements to a path, and returns an error if this path does not exist in the root
// folder.
func found(root string, elements ...string) error {
	path := filepath.Join(elements...)
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return fmt.Errorf("%s does not exist", path)
	}
	return nil
}
