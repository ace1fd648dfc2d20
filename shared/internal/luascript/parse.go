package luascript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// source is one file.
type source struct {
	file        string
	interpreter string // "#!lua flags=allow-oom", or ""
	header      header
	definitions []definition
	code        []token
}

// header holds the declarations of a file's first comment.
type header struct {
	keys, argv map[string]int
	sections   map[string]bool
	requires   []requirement
}

type requirement struct {
	name string
	line int
}

// complete returns an error when a section that every script needs is absent.
func (h header) complete(file string) error {
	for _, s := range []string{"KEYS", "ARGV", "Reply"} {
		if !h.sections[s] {
			return fmt.Errorf("%s:1: the header has no line that starts with \"-- %s\"", file, s)
		}
	}
	return nil
}

// parse reads a file.
func parse(file, text string) (source, error) {
	s := source{file: file}
	lines := strings.Split(text, "\n")
	at := 0
	if strings.HasPrefix(text, "#!") {
		s.interpreter, lines[0], at = lines[0], "", 1
	}

	var err error
	if s.header, err = parseHeader(file, lines, at); err != nil {
		return s, err
	}
	if err := s.takeDefinitions(lines); err != nil {
		return s, err
	}
	s.code, err = scan(file, strings.Join(lines, "\n"), 1)
	return s, err
}

var (
	sectionStart = regexp.MustCompile(`^(KEYS|ARGV|Reply|Requires:)(?: +|$)(.*)$`)
	entry        = regexp.MustCompile(`(?:^|  +)(\d+) ([a-z][a-z0-9_]*)`)
)

// parseHeader reads the comment that begins at a line.
func parseHeader(file string, lines []string, at int) (header, error) {
	h := header{keys: make(map[string]int), argv: make(map[string]int), sections: make(map[string]bool)}
	section := ""
	for ; at < len(lines) && strings.HasPrefix(lines[at], "--"); at++ {
		content := strings.TrimSpace(strings.TrimPrefix(lines[at], "--"))
		if content == "" {
			section = ""
		}
		if found := sectionStart.FindStringSubmatch(content); found != nil {
			section, content = strings.TrimSuffix(found[1], ":"), found[2]
			h.sections[section] = true
		}

		where := Position{file, at + 1}
		switch section {
		case "KEYS":
			if err := declare(h.keys, section, content, where); err != nil {
				return h, err
			}
		case "ARGV":
			if err := declare(h.argv, section, content, where); err != nil {
				return h, err
			}
		case "Requires":
			for name := range strings.SplitSeq(content, ",") {
				if name = strings.TrimSpace(name); name != "" {
					h.requires = append(h.requires, requirement{name, where.Line})
				}
			}
		}
	}
	return h, nil
}

// declare adds the entries of a line of KEYS or ARGV.
func declare(names map[string]int, section, line string, where Position) error {
	for _, found := range entry.FindAllStringSubmatch(line, -1) {
		number, _ := strconv.Atoi(found[1])
		if number != len(names)+1 {
			return fmt.Errorf("%s: %s %d follows %d", where, section, number, len(names))
		}
		if _, twice := names[found[2]]; twice {
			return fmt.Errorf("%s: %s %s is declared twice", where, section, found[2])
		}
		names[found[2]] = number
	}
	return nil
}

var (
	constantLine = regexp.MustCompile(`^define (\$\{[A-Za-z_]\w*\}) (.*)$`)
	macroLine    = regexp.MustCompile(`^define (\$[A-Za-z_]\w*)\(([\w, ]*)\)(.*)$`)
)

// parseDefinition reads a line that starts with "define". body is the text after the name.
func parseDefinition(line string, at Position) (d definition, body string, err error) {
	d.at = at
	if found := constantLine.FindStringSubmatch(line); found != nil {
		d.name = found[1]
		return d, found[2], nil
	}
	found := macroLine.FindStringSubmatch(line)
	if found == nil {
		return d, "", fmt.Errorf("%s: a definition is \"define ${NAME} text\" or \"define $name(parameters) body\"", at)
	}

	d.name = found[1]
	for parameter := range strings.SplitSeq(found[2], ",") {
		if parameter = strings.TrimSpace(parameter); parameter != "" {
			d.parameters = append(d.parameters, parameter)
		}
	}
	return d, found[3], nil
}

// takeDefinitions reads the definitions and blanks their lines.
func (s *source) takeDefinitions(lines []string) error {
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "define ") {
			continue
		}
		d, body, err := parseDefinition(lines[i], Position{s.file, i + 1})
		if err != nil {
			return err
		}
		lines[i] = ""

		first := i + 1
		if strings.TrimSpace(body) == "" {
			var indented []string
			for i+1 < len(lines) && (lines[i+1] == "" || lines[i+1][0] == ' ') {
				i++
				indented = append(indented, lines[i])
				lines[i] = ""
			}
			first, body = first+1, strings.Join(indented, "\n")
		}
		if err := d.read(body, first); err != nil {
			return err
		}
		s.definitions = append(s.definitions, d)
	}
	return nil
}

// read sets the body, whose first line is a file's line, as it replaces a use: on one line, and in
// parentheses when it is an expression with an operator.
func (d *definition) read(body string, line int) error {
	tokens, err := scan(d.at.File, body, line)
	if err != nil {
		return err
	}

	expression := true
	for i, t := range tokens {
		if t.kind == newline {
			tokens[i], expression = token{space, " ", t.line}, false
		}
	}
	tokens = trim(tokens)
	if len(tokens) == 0 {
		return fmt.Errorf("%s: %s has no text", d.at, d.name)
	}
	if expression && !d.constant() && compound(tokens) {
		tokens = enclose(tokens)
	}
	d.body = tokens
	return nil
}

// trim returns tokens without spaces at the ends, and a space for each line or indentation.
func trim(tokens []token) []token {
	var out []token
	for _, t := range tokens {
		if t.kind == space || t.kind == newline {
			if len(out) == 0 || out[len(out)-1].kind == space {
				continue
			}
			t = token{space, " ", t.line}
		}
		out = append(out, t)
	}
	if len(out) > 0 && out[len(out)-1].kind == space {
		out = out[:len(out)-1]
	}
	return out
}

func enclose(tokens []token) []token {
	out := append([]token{{symbol, "(", tokens[0].line}}, tokens...)
	return append(out, token{symbol, ")", tokens[0].line})
}
