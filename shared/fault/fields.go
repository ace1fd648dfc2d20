package fault

import (
	"errors"
	"fmt"
	"slices"
)

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

// Join adds the fields of another invalid_request error, one for each name, and returns
// [Fields.Err] of all. An err of another kind is returned as it is.
func (f Fields) Join(err error) error {
	var other *Error
	if err != nil && (!errors.As(err, &other) || other.Code != InvalidRequest) {
		return err
	}
	all := slices.Clone(f)
	if other != nil {
		for _, field := range other.Fields {
			if !slices.ContainsFunc(all, func(known Field) bool { return known.Field == field.Field }) {
				all = append(all, field)
			}
		}
	}
	return all.Err()
}
