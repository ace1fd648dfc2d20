package luascript

import (
	"fmt"
	"strings"
)

type kind uint8

const (
	space kind = iota
	newline
	word   // a name or a keyword
	text   // a string with its quotes
	use    // $name
	braced // ${NAME}
	symbol // anything else, including numbers; .. is one symbol
)

type token struct {
	kind kind
	text string
	line int
}

// scan splits code into tokens and removes comments. The argument line is the number of the code's
// first line in the file.
func scan(file, code string, line int) ([]token, error) {
	tokens := make([]token, 0, len(code)/3)
	for len(code) > 0 {
		kind, length := next(code)
		found := code[:length]
		switch {
		case strings.HasPrefix(found, "--[["), found == "[[":
			return nil, fmt.Errorf("%s: long brackets are not supported", Position{file, line})
		case kind == text && (length < 2 || found[length-1] != found[0]):
			return nil, fmt.Errorf("%s: the string does not end on its line", Position{file, line})
		case kind == symbol && found == "$":
			return nil, fmt.Errorf("%s: $ without a name", Position{file, line})
		case !strings.HasPrefix(found, "--"):
			tokens = append(tokens, token{kind, found, line})
		}
		line += strings.Count(found, "\n")
		code = code[length:]
	}
	return tokens, nil
}

// next returns the kind and the length of the token or comment at the start of code.
func next(code string) (kind, int) {
	switch c := code[0]; {
	case c == '\n':
		return newline, 1
	case blank(c):
		return space, span(code, blank)
	case c == '\'' || c == '"':
		return text, stringLength(code)
	case letter(c):
		return word, span(code, wordly)
	case digit(c):
		return symbol, span(code, func(c byte) bool { return wordly(c) || c == '.' })
	case c == '$':
		return dollar(code)
	default:
		return symbol, symbolLength(code)
	}
}

// dollar returns the kind and the length of the token at the start of code. The code must start
// with $.
func dollar(code string) (kind, int) {
	if end := strings.IndexByte(code, '}'); strings.HasPrefix(code, "${") && end > 0 {
		return braced, end + 1
	}
	if len(code) > 1 && letter(code[1]) {
		return use, 1 + span(code[1:], wordly)
	}
	return symbol, 1
}

// symbolLength returns the length of the symbol or comment at the start of code.
func symbolLength(code string) int {
	if strings.HasPrefix(code, "--") {
		return lineLength(code)
	}
	for _, s := range [...]string{"...", "..", "[[", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(code, s) {
			return len(s)
		}
	}
	return 1
}

func blank(c byte) bool  { return c == ' ' || c == '\t' || c == '\r' }
func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
func wordly(c byte) bool { return letter(c) || digit(c) }

func span(code string, in func(byte) bool) int {
	n := 0
	for n < len(code) && in(code[n]) {
		n++
	}
	return n
}

func lineLength(code string) int {
	if end := strings.IndexByte(code, '\n'); end >= 0 {
		return end
	}
	return len(code)
}

// stringLength returns the length of the string at the start of code, or the length of the rest of
// the line if the string does not end on its line.
func stringLength(code string) int {
	for i := 1; i < len(code) && code[i] != '\n'; i++ {
		switch code[i] {
		case '\\':
			i++
		case code[0]:
			return i + 1
		}
	}
	return lineLength(code)
}

// join returns tokens as text.
func join(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.text)
	}
	return b.String()
}

// compound reports whether tokens are an expression with an operator outside of brackets. If so,
// the expression needs parentheses when it replaces a name. For a list of expressions or a
// statement, which must not be in parentheses, compound returns false.
func compound(tokens []token) bool {
	depth, operators := 0, false
	for _, t := range tokens {
		switch t.text {
		case "(", "[", "{", "function":
			depth++
		case ")", "]", "}", "end":
			depth--
		case ",", "=", ";":
			if depth == 0 {
				return false
			}
		case "+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", ">", "<=", ">=", "and", "or", "not", "#":
			operators = operators || depth == 0
		}
	}
	return operators
}
