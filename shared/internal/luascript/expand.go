package luascript

import (
	"errors"
	"fmt"
	"regexp"
)

// maxDepth is the maximum nesting of definitions.
const maxDepth = 20

// expander replaces the names in the code of one file.
type expander struct {
	file        string
	definitions definitions
	header      header // the script's header, also if the file is one that the script requires
}

// expand returns code with every name replaced. It keeps all line numbers.
func (e *expander) expand(code []token) (string, error) {
	out, err := e.replace(code, 0)
	if err != nil {
		return "", err
	}
	return join(out), nil
}

func (e *expander) at(t token) Position { return Position{e.file, t.line} }

func (e *expander) replace(code []token, depth int) ([]token, error) {
	out := make([]token, 0, len(code)+len(code)/4)
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: a definition uses itself", e.at(code[0]))
	}
	for i := 0; i < len(code); i++ {
		t := code[i]
		var replaced []token
		var err error
		length := 1
		switch {
		case t.kind == braced:
			replaced, err = e.constant(t, depth)
		case t.kind == text:
			replaced, err = e.inString(t)
		case t.kind == use:
			replaced, length, err = e.call(code[i:], depth)
		case t.kind == word && (t.text == "KEYS" || t.text == "ARGV") && i+2 < len(code) && code[i+1].text == ".":
			replaced, err = e.argument(t, code[i+2])
			length = 3
		default:
			replaced = code[i : i+1]
		}
		if err != nil {
			return nil, err
		}
		out = append(out, replaced...)
		i += length - 1
	}
	return out, nil
}

// constant returns the tokens that replace ${NAME}.
func (e *expander) constant(t token, depth int) ([]token, error) {
	d, exists := e.definitions[t.text]
	if !exists {
		return nil, fmt.Errorf("%s: %s is not defined", e.at(t), t.text)
	}
	return e.replace(onLine(d.body, t.line), depth+1)
}

var bracedName = regexp.MustCompile(`\$\{[A-Za-z_]\w*\}`)

// inString replaces the constants in a string.
func (e *expander) inString(t token) ([]token, error) {
	var failed error
	replaced := bracedName.ReplaceAllStringFunc(t.text, func(name string) string {
		tokens, err := e.constant(token{braced, name, t.line}, 0)
		if err != nil {
			failed = err
		}
		return join(tokens)
	})
	return []token{{text, replaced, t.line}}, failed
}

// argument returns KEYS[n] or ARGV[n], where n is the number that the header declares for name.
func (e *expander) argument(table, name token) ([]token, error) {
	numbers := e.header.keys
	if table.text == "ARGV" {
		numbers = e.header.argv
	}
	n, exists := numbers[name.text]
	if !exists {
		return nil, fmt.Errorf("%s: the script's header does not declare %s %s", e.at(table), table.text, name.text)
	}
	return []token{{symbol, fmt.Sprintf("%s[%d]", table.text, n), table.line}}, nil
}

// call returns the tokens that replace the call $name(...) at the start of code, and the length of
// the call in tokens.
func (e *expander) call(code []token, depth int) ([]token, int, error) {
	where, name := e.at(code[0]), code[0].text
	d, exists := e.definitions[name]
	if !exists {
		return nil, 0, fmt.Errorf("%s: %s is not defined", where, name)
	}
	arguments, length, err := split(code)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %s %w", where, name, err)
	}
	if len(arguments) != len(d.parameters) {
		return nil, 0, fmt.Errorf("%s: %s takes %d arguments and got %d", where, name, len(d.parameters),
			len(arguments))
	}

	out, err := e.replace(onLine(substitute(d, arguments), where.Line), depth+1)
	if err != nil {
		return nil, 0, fmt.Errorf("%w (in %s, defined at %s)", err, name, d.at)
	}
	for _, t := range code[:length] {
		if t.kind == newline {
			out = append(out, t)
		}
	}
	return out, length, nil
}

// split returns the arguments of the call at the start of code, and the length of the call in
// tokens.
func split(code []token) (arguments [][]token, length int, err error) {
	if len(code) < 2 || code[1].text != "(" {
		return nil, 0, errors.New("needs its arguments in parentheses right after it")
	}
	depth, start := 0, 2
	for i := 1; i < len(code); i++ {
		switch code[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				if last := trim(code[start:i]); len(arguments) > 0 || len(last) > 0 {
					arguments = append(arguments, last)
				}
				return arguments, i + 1, nil
			}
		case ",":
			if depth == 1 {
				arguments, start = append(arguments, trim(code[start:i])), i+1
			}
		}
	}
	return nil, 0, errors.New("has no closing parenthesis")
}

// substitute returns the body of a definition, with each parameter replaced with its argument. A
// name after a dot or a colon is a field, so substitute does not replace it.
func substitute(d definition, arguments [][]token) []token {
	var out []token
	for i, t := range d.body {
		switch t.kind {
		case word:
			n := d.parameter(t.text)
			field := i > 0 && (d.body[i-1].text == "." || d.body[i-1].text == ":")
			switch {
			case n < 0 || field:
				out = append(out, t)
			case compound(arguments[n]) && len(d.body) > 1:
				out = append(out, enclose(arguments[n])...)
			default:
				out = append(out, arguments[n]...)
			}
		case braced:
			if n := d.parameter(t.text[2 : len(t.text)-1]); n >= 0 {
				out = append(out, arguments[n]...)
				continue
			}
			out = append(out, t)
		case text:
			t.text = bracedName.ReplaceAllStringFunc(t.text, func(name string) string {
				if n := d.parameter(name[2 : len(name)-1]); n >= 0 {
					return join(arguments[n])
				}
				return name
			})
			out = append(out, t)
		default:
			out = append(out, t)
		}
	}
	return out
}

// onLine returns a copy of tokens with a new line number, so that an error names the line that uses
// a definition.
func onLine(tokens []token, line int) []token {
	out := make([]token, len(tokens))
	for i, t := range tokens {
		t.line = line
		out[i] = t
	}
	return out
}
