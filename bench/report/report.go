// Package report shows what was measured: as a table in the terminal and as docs/benchmarks.md with
// plots.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is one measurement and its target.
type Row struct {
	// ID is the measure's: P1 to P13.
	ID string
	// Work is what was done, Against whom it is compared with.
	Work, Against string
	// Ours and Theirs are what each did, for people.
	Ours, Theirs string
	// Value is what the target is for: a ratio, or a quantity when Unit is set. Low and High are
	// its spread over the rounds.
	Value, Low, High float64
	Unit             string
	// AtLeast or AtMost is the target. With neither the row explains others.
	AtLeast, AtMost float64
	// Note is a number of Notes: what differs in semantics. WhyNote is one for a target that is
	// missed: the measurement that explains it.
	Note, WhyNote int
}

// Met is whether the target is.
func (r Row) Met() bool { return r.within(1) }

// within loosens the target by a factor below 1.
func (r Row) within(slack float64) bool {
	switch {
	case r.AtLeast != 0:
		return r.Value >= r.AtLeast*slack
	case r.AtMost != 0:
		return r.Value <= r.AtMost/slack
	default:
		return true
	}
}

func (r Row) target() string {
	switch {
	case r.AtLeast != 0:
		return "≥ " + r.quantity(r.AtLeast)
	case r.AtMost != 0:
		return "≤ " + r.quantity(r.AtMost)
	default:
		return ""
	}
}

func (r Row) quantity(v float64) string {
	if r.Unit != "" {
		return short(v) + " " + r.Unit
	}
	return short(v) + "×"
}

func (r Row) verdict() string {
	switch {
	case r.target() == "":
		return ""
	case r.Met():
		return "met"
	default:
		return "missed" + mark(r.WhyNote)
	}
}

// mark refers to a note; 0 is none.
func mark(note int) string {
	if note == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", note)
}

// spread is empty when there was one round.
func (r Row) spread() string {
	if r.Low == r.High {
		return ""
	}
	return short(r.Low) + "–" + short(r.High)
}

func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Rate writes operations in a second for people: "34.1 k/s".
func Rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1f M/s", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.1f k/s", v/1e3)
	default:
		return fmt.Sprintf("%.0f /s", v)
	}
}

// Table writes the rows for a terminal.
func Table(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 2, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\tWORK\tAGAINST\tOURS\tTHEIRS\tMEASURED\tSPREAD\tTARGET\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.ID, r.Work, r.Against, mark(r.Note), r.Ours, r.Theirs, r.quantity(r.Value), r.spread(), r.target(),
			r.verdict())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("error writing the table: %w", err)
	}
	return nil
}

// Check fails when a row is worse than its target by more than a factor: slack 0.6 forgives 40 %.
func Check(rows []Row, slack float64) error {
	var worse []string
	for _, r := range rows {
		if !r.within(slack) {
			worse = append(worse, fmt.Sprintf("%s %s against %s: %s, target %s", r.ID, r.Work, r.Against,
				r.quantity(r.Value), r.target()))
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("worse than the target by more than a factor of %s:\n  %s", short(slack),
			strings.Join(worse, "\n  "))
	}
	return nil
}

// Document is docs/benchmarks.md.
type Document struct {
	Machine, Versions, Commit, Date string
	// Rounds says how much was measured.
	Rounds string
	Rows   []Row
	Notes  []string
	// Plots are pairs of a title and a file beside the document.
	Plots [][2]string
}

// Markdown renders it.
func (d Document) Markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nWritten by `make bench`; do not edit. Every figure is a ratio within one run on one machine, on a real Redis: contenders take\n" +
		"turns, a ratio is taken in each round, and its median is shown with the lowest and the highest. Absolute numbers are those of this machine.\n\n")
	fmt.Fprintf(&b, "- Machine: %s\n- Versions: %s\n- Commit: %s, %s\n- Rounds: %s\n\n", d.Machine, d.Versions,
		d.Commit, d.Date, d.Rounds)
	b.WriteString("| | work | against | ours | theirs | measured | spread | target | |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range d.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s%s | %s | %s | %s | %s | %s | %s |\n",
			r.ID, r.Work, r.Against, mark(r.Note), r.Ours, r.Theirs, r.quantity(r.Value), r.spread(), r.target(),
			r.verdict())
	}
	b.WriteString("\n")
	for i, note := range d.Notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	for _, p := range d.Plots {
		fmt.Fprintf(&b, "\n## %s\n\n![%s](%s)\n", p[0], p[0], p[1])
	}
	return b.String()
}
