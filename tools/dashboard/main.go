// Dashboard draws the module's CloudWatch dashboard as a picture for the documentation. The values
// are examples: two hours in which Redis is unavailable for ten minutes.
//
//	go run ./tools/dashboard >docs/img/dashboard.svg
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run("terraform/module/dashboard.json.tftpl", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// run writes the picture of the template to out.
func run(template string, out io.Writer) error {
	text, err := os.ReadFile(template) //nolint:gosec // the module's own file
	if err != nil {
		return fmt.Errorf("error reading the dashboard: %w", err)
	}
	widgets, err := parse(string(text))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, draw(widgets)); err != nil {
		return fmt.Errorf("error writing the picture: %w", err)
	}
	return nil
}
