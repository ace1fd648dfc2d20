package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

// print writes v as JSON if --json is set. Otherwise it calls text to write the output.
func (a *app) print(v any, text func(io.Writer) error) error {
	if !a.json {
		return text(a.Stdout)
	}
	return writeJSON(a.Stdout, v)
}

// printLine writes v as JSON if --json is set, otherwise a formatted line.
func (a *app) printLine(v any, format string, args ...any) error {
	return a.print(v, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, format+"\n", args...)
		return err
	})
}

func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// note writes a line for people to standard error, unless --quiet is set.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
	}
}

// colour reports whether to write colours to w: w is a terminal, TERM is not "dumb" and NO_COLOR is
// not set (https://no-color.org).
func (a *app) colour(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (a *app) table(header ...string) *table.Table { return table.New(a.colour(a.Stdout), header...) }

// number returns a cell that is aligned to the right.
func number(n int64) table.Cell { return right(strconv.FormatInt(n, 10)) }

func right(text string) table.Cell { return table.Cell{Text: text, Right: true} }

// maxColumn is the maximum number of characters of an error in a table. The flag --json and the
// command "jobs get" print the whole error.
const maxColumn = 60

func truncate(s string) string {
	runes := []rune(s)
	if len(runes) <= maxColumn {
		return s
	}
	return string(runes[:maxColumn-1]) + "…"
}
