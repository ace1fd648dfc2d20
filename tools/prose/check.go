package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxWidth is the maximum width of a line of comment or Markdown prose, in columns. A tab counts as
// four columns.
const maxWidth = 100

// Finding is a line that breaks a rule.
type Finding struct {
	File    string
	Line    int
	Message string
}

// String formats the finding as compilers do: file, line, message.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// passage is a line of a comment, a line of Markdown, or a string literal. The width limit applies
// only where prose is true.
type passage struct {
	line  int
	text  string
	prose bool
}

// Check returns the findings in one file. It checks Go, Lua, shell, YAML, Terraform and Markdown,
// and returns nothing for other files.
func Check(file string, source []byte) []Finding {
	var findings []Finding
	for _, p := range passages(file, source) {
		for _, w := range stoppers() {
			if found := w.pattern.FindString(p.text); found != "" {
				findings = append(findings, Finding{file, p.line, fmt.Sprintf("%q: write %s", found, w.instead)})
			}
		}
		if p.prose && width(p.text) > maxWidth && breakable(p.text) {
			findings = append(findings, Finding{file, p.line,
				fmt.Sprintf("%d columns: wrap at %d", width(p.text), maxWidth)})
		}
	}
	return findings
}

func passages(file string, source []byte) []passage {
	switch filepath.Ext(file) {
	case ".go":
		return goPassages(source)
	case ".md":
		return markdownPassages(string(source))
	case ".lua":
		return commentLines(string(source), "--")
	case ".sh", ".yml", ".yaml", ".tf", ".hcl":
		return commentLines(string(source), "#")
	}
	return nil
}

// goPassages returns the comments, each with its full source line, and the string literals that
// contain a space.
func goPassages(source []byte) []passage {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)

	lines := strings.Split(string(source), "\n")
	var out []passage
	for {
		at, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return out
		case token.COMMENT:
			out = append(out, comment(files.Position(at), literal, lines)...)
		case token.STRING:
			if strings.Contains(literal, " ") {
				out = append(out, passage{line: files.Position(at).Line, text: literal})
			}
		default:
		}
	}
}

// comment returns a comment's lines. It returns nothing for //go: and //nolint directives.
func comment(at token.Position, literal string, lines []string) []passage {
	if strings.HasPrefix(literal, "//go:") || strings.HasPrefix(literal, "//nolint") {
		return nil
	}
	var out []passage
	for i, text := range strings.Split(literal, "\n") {
		line := lines[at.Line-1+i]
		alone := strings.HasPrefix(strings.TrimSpace(line), "//") || i > 0
		if alone {
			text = line
		}
		out = append(out, passage{line: at.Line + i, text: text, prose: alone})
	}
	return out
}

func commentLines(source, mark string) []passage {
	var out []passage
	for i, line := range strings.Split(source, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), mark) {
			out = append(out, passage{line: i + 1, text: line, prose: true})
		}
	}
	return out
}

// markdownPassages returns the lines outside code blocks. Lines of tables have no width limit.
func markdownPassages(source string) []passage {
	var out []passage
	code := false
	for i, line := range strings.Split(source, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			code = !code
			continue
		}
		if !code {
			out = append(out, passage{line: i + 1, text: line, prose: !strings.HasPrefix(trimmed, "|")})
		}
	}
	return out
}

func width(text string) int { return utf8.RuneCountInString(strings.ReplaceAll(text, "\t", "    ")) }

// breakable reports whether a line can wrap: it contains no URL, and has at least five words.
func breakable(text string) bool {
	return !strings.Contains(text, "://") && strings.Count(strings.TrimSpace(text), " ") > 3
}
