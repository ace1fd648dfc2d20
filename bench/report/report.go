// Package report renders measurements: as a table in the terminal, and as docs/benchmarks.md with
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
	// ID names the measure: P1 to P13.
	ID string
	// Work says what was done, Against names the contender.
	Work, Against string
	// Ours and Theirs are the absolute figures, formatted for readers: "34.1 k/s".
	Ours, Theirs string
	// Value is compared with the target. It is a ratio, or a quantity if Unit is set. Low and High
	// are the lowest and the highest value of the rounds.
	Value, Low, High float64
	Unit             string
	// AtLeast or AtMost is the target. A row without a target helps to explain other rows.
	AtLeast, AtMost float64
	// Note is the number of the footnote about a difference in semantics. WhyNote is the number of
	// the footnote that explains a missed target.
	Note, WhyNote int
}

// Met reports whether the measured value reaches its target.
func (r Row) Met() bool { return r.meets(1) }

// meets reports whether the value reaches its target. It multiplies a minimum by slack and divides
// a maximum by slack, so that a slack below 1 loosens the target.
func (r Row) meets(slack float64) bool {
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

// mark returns the reference to a footnote; 0 means none.
func mark(note int) string {
	if note == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", note)
}

// spread returns the lowest and the highest value, or "" if they are equal.
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

// Rate formats operations per second: "34.1 k/s".
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

// Check returns nil if each row meets its target after slack has loosened it: with a slack of 0.6,
// a row needs only 60 % of its minimum. Otherwise, Check returns an error that lists the rows that
// miss their loosened targets.
func Check(rows []Row, slack float64) error {
	var worse []string
	for _, r := range rows {
		if !r.meets(slack) {
			worse = append(worse, fmt.Sprintf("%s %s against %s: %s, target %s", r.ID, r.Work, r.Against,
				r.quantity(r.Value), r.target()))
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("these results miss their targets by more than the factor %s permits:\n  %s", short(slack),
			strings.Join(worse, "\n  "))
	}
	return nil
}

// Document holds the content of docs/benchmarks.md.
type Document struct {
	Machine, Versions, Commit, Date string
	// Rounds describes the number and the length of the rounds.
	Rounds string
	Rows   []Row
	Notes  []string
	// Plots has a pair for each plot: its title, and the path of its file relative to the document.
	Plots [][2]string
}

// Markdown renders the document.
func (d Document) Markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nWritten by `make bench`; do not edit. Each ratio compares two contenders in one run on one machine,\n" +
		"on a real Redis. The contenders take turns. A ratio is computed in each round; the table shows the\n" +
		"median with the lowest and the highest. Absolute figures depend on the machine.\n\n")
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
