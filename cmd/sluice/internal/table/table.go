// Package table formats tables with aligned and coloured columns.
package table

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Colour is an ANSI colour of a cell.
type Colour string

// The colours of a cell.
const (
	Plain  Colour = "" // the terminal's default
	Dim    Colour = "2"
	Bold   Colour = "1"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Cell is a text with its colour and alignment.
type Cell struct {
	Text   string
	Colour Colour
	Right  bool // aligned to the right, for numbers
}

// Text returns a plain cell.
func Text(s string) Cell { return Cell{Text: s} }

// Table collects rows of cells, and writes them with aligned columns.
type Table struct {
	colour bool
	rows   [][]Cell
}

// New returns a table with a header. If colour is false, the table is written without colours.
func New(colour bool, header ...string) *Table {
	t := &Table{colour: colour}
	if len(header) > 0 {
		cells := make([]Cell, len(header))
		for i, h := range header {
			cells[i] = Cell{Text: h, Colour: Dim}
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// Row appends a row. It replaces control characters in the texts with spaces.
func (t *Table) Row(cells ...Cell) {
	for i := range cells {
		cells[i].Text = oneLine(cells[i].Text)
		if cells[i].Right && len(t.rows) > 0 && i < len(t.rows[0]) {
			t.rows[0][i].Right = true // align the header with the numbers
		}
	}
	t.rows = append(t.rows, cells)
}

// Write writes the table to w. Each column is as wide as its widest cell.
func (t *Table) Write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, c := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text))
			line[i] = Paint(t.colour, c.Colour, c.Text) + padding
			if c.Right {
				line[i] = padding + Paint(t.colour, c.Colour, c.Text)
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Paint returns the text with the escape sequences for a colour, or unchanged if wanted is false.
func Paint(wanted bool, c Colour, text string) string {
	if !wanted || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// oneLine replaces control characters with spaces. Otherwise an untrusted text, such as a job's
// error, could control the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}
