package client

import "fmt"

// Field is an invalid input of a request.
type Field struct {
	// Field is the path of the input in the request's body, query or path: "rules[1].limit".
	Field string `json:"field"`
	// Message describes the valid inputs: "must be 1 to 100".
	Message string `json:"message"`
}

// fields collects the invalid inputs of a request, so that one error reports all of them.
type fields []Field

func (f *fields) add(field, format string, args ...any) {
	*f = append(*f, Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// err returns nil if f is empty. Otherwise it returns an [*Error] of the operation op with the code
// [CodeInvalidRequest].
func (f fields) err(op string) error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return &Error{Op: op, Code: CodeInvalidRequest, Detail: f[0].Field + ": " + f[0].Message, Fields: f}
	default:
		return &Error{Op: op, Code: CodeInvalidRequest, Detail: fmt.Sprintf("%d fields are invalid", len(f)), Fields: f}
	}
}

const (
	maxName     = 128 // bytes
	nameMessage = "must start with a letter or digit, hold only letters, digits and . _ : -, " +
		"and be 1 to 128 characters long"
)

// checkName refuses a name that the API would refuse. Without this check, a name such as
// "../policies" would change the path of the request.
func checkName(op, field, name string) error {
	if validName(name) {
		return nil
	}
	return fields{{Field: field, Message: nameMessage}}.err(op)
}

// validName reports whether s matches [A-Za-z0-9][A-Za-z0-9._:-]{0,127}.
func validName(s string) bool {
	if len(s) == 0 || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i], i == 0) {
			return false
		}
	}
	return true
}

func nameByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	case c == '.', c == '_', c == ':', c == '-':
		return !first
	default:
		return false
	}
}
