package luascript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// source is one parsed file.
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

// complete returns an error if a section that every script needs is missing.
func (h header) complete(file string) error {
	for _, s := range []string{"KEYS", "ARGV", "Reply"} {
		if !h.sections[s] {
			return fmt.Errorf("%s:1: the header has no line that starts with \"-- %s\"", file, s)
		}
	}
	return nil
}

// parse parses the text of a file.
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

// parseHeader parses the comment that starts at lines[at].
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

// declare adds the entries of a KEYS or ARGV line to the map names: the name of each entry with its
// number.
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

// parseDefinition parses a line that starts with "define". The result body is the text after the
// name and its parameters.
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

// takeDefinitions parses the definitions in lines, and replaces their lines with "" so that only
// code and comments remain.
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

// read parses the body of a definition, joins its lines and stores the tokens. If the body is one
// line and an expression with an operator, read puts it in parentheses. The argument line is the
// number of the body's first line in the file.
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

// trim removes leading and trailing white space, and replaces any other white space with one space.
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
