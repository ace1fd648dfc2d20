package fault

import (
	"errors"
	"fmt"
	"slices"
)

// Fields collects invalid inputs, so that one error names all of them. The zero value is empty.
type Fields []Field

// Add adds an invalid input. The message is formatted with [fmt.Sprintf].
func (f *Fields) Add(field, format string, args ...any) {
	*f = append(*f, Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// Err returns an invalid_request [*Error] that lists every field, or nil if there is none.
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

// Join returns one invalid_request error for the fields of f and of err, without duplicates, or nil
// if there are none. If err has another code or no code, Join returns err unchanged.
func (f Fields) Join(err error) error {
	var other *Error
	if err != nil && (!errors.As(err, &other) || other.Code != InvalidRequest) {
		return err
	}
	all := slices.Clone(f)
	if other != nil {
		for _, field := range other.Fields {
			if !slices.ContainsFunc(all, func(f Field) bool { return f.Field == field.Field }) {
				all = append(all, field)
			}
		}
	}
	return all.Err()
}
