package provider

import (
	"errors"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/fault"
)

// sentence returns the error's text with a capital letter and a full stop.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + strings.TrimRight(text[1:], ".?") + "."
}

// fail adds the errors of a failed call. If the API rejected some fields, fail adds one error at
// the attribute of each. Otherwise, it adds a single error with the summary.
func fail(diags *diag.Diagnostics, summary string, err error) {
	var e *client.Error
	if errors.As(err, &e) && len(e.Fields) > 0 {
		var fields fault.Fields
		for _, f := range e.Fields {
			fields = append(fields, fault.Field(f))
		}
		addInvalid(diags, fields)
		return
	}
	detail := sentence(err)
	if e != nil && e.RequestID != "" {
		detail += " The request ID in the logs of the API is " + e.RequestID + "."
	}
	diags.AddError(summary, detail)
}

// addInvalid adds an error at the attribute of each invalid field.
func addInvalid(diags *diag.Diagnostics, fields fault.Fields) {
	for _, f := range fields {
		at, message := attributeOf(f.Field), f.Message
		if strings.HasSuffix(f.Field, ".window_ms") {
			message = "must be 1ms to 366d"
		}
		diags.AddAttributeError(at, "The limiter policy is not valid", at.String()+" "+message+".")
	}
}

// attributeOf converts a field's name in the API, such as "overrides[1].rules[0].window_ms", to the
// path of the attribute.
func attributeOf(field string) path.Path {
	at := path.Empty()
	for step := range strings.SplitSeq(field, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		if name == "window_ms" {
			name = "window"
		}
		at = at.AtName(name)
		if i, err := strconv.Atoi(index); indexed && err == nil {
			at = at.AtListIndex(i)
		}
	}
	return at
}
