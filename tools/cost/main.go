// Cost computes the monthly cost of Sluice and of its alternatives, and writes the tables of
// docs/cost.md.
//
//	go run ./tools/cost             prints the tables
//	go run ./tools/cost -update     writes the tables into docs/cost.md
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	update := flags.Bool("update", false, "write the tables into the page instead of printing them")
	page := flags.String("page", "docs/cost.md", "the `file` of the page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !*update {
		if _, err := io.WriteString(out, tables()); err != nil {
			return fmt.Errorf("error printing: %w", err)
		}
		return nil
	}
	text, err := os.ReadFile(*page)
	if err != nil {
		return fmt.Errorf("error reading the page: %w", err)
	}
	with, err := replaced(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(*page, []byte(with), 0o644); err != nil { //nolint:gosec // everybody may read the page
		return fmt.Errorf("error writing the page: %w", err)
	}
	return nil
}

const begin, end = "<!-- computed by: go run ./tools/cost -update -->\n", "<!-- end -->"

// replaced returns the page with newly computed tables.
func replaced(page string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", errors.New("the page lacks the markers around the tables")
	}
	return before + begin + tables() + end + after, nil
}
