// Goreleaser checks release configurations with GoReleaser's own configuration package: what
// `goreleaser check` does, except that it does not compute the defaults of publishers that Sluice
// does not use. Those defaults need most of GoReleaser, which takes minutes to build. The workflow
// on GitHub runs the complete `goreleaser check`.
//
//	cd tools/goreleaser && go run . -root ../.. FILE...
//
// A configuration is refused if it has an unknown field, refers to a build, an archive or a file
// that does not exist, or lets two of its parts have the same ID.
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

// check returns all references of the configuration that lead nowhere, joined.
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
		// The build writes files of dist; all others are in the repository.
		if !strings.HasPrefix(f.Glob, "dist/") {
			errs = append(errs, found(root, f.Glob))
		}
	}
	return errors.Join(errs...)
}

// unique adds the ID of a part to those of its kind, and returns an error if it is there already.
func unique(kind, id string, ids map[string]bool) error {
	if ids[id] {
		return fmt.Errorf("two parts of kind %s have the ID %q", kind, id)
	}
	ids[id] = true
	return nil
}

// known returns an error if one of the IDs is not among those that exist.
func known(kind string, ids []string, exist map[string]bool) error {
	for _, id := range ids {
		if !exist[id] {
			return fmt.Errorf("there is no %s with the ID %q", kind, id)
		}
	}
	return nil
}

// found returns an error if the path, of which the elements are joined, does not exist below root.
func found(root string, elements ...string) error {
	path := filepath.Join(elements...)
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return fmt.Errorf("%s does not exist", path)
	}
	return nil
}
