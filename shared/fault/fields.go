package fault

import "fmt"

// Fields collects invalid inputs, so that one answer names them all.
type Fields []Field

// Add notes one invalid input.
func (f *Fields) Add(field, format string, args ...any) {
	*f = append(*f, Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// Err returns nil when nothing was noted, else an invalid_request [*Error] that lists every field.
func (f Fields) Err() error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return &Error{Code: InvalidRequest, Detail: f[0].Field + ": " + f[0].Message, Fields: f}
	default:
		return &Error{Code: InvalidRequest, Detail: fmt.Sprintf("%d fields are invalid", len(f)), Fields: f}
	}
}

// Invalid returns an invalid_request [*Error] for one field.
func Invalid(field, format string, args ...any) error {
	var f Fields
	f.Add(field, format, args...)
	return f.Err()
}
