package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluicehq/sluice/shared/fault"
)

// MaxBody is the maximum size of a request body, in bytes.
const MaxBody = 1 << 20

// Decode decodes the JSON object in the body of r. The argument into is a pointer to a struct,
// which receives the values. Decode treats an empty body as an empty object.
//
// Decode refuses unknown members, members whose name is in the wrong case, duplicate members, wrong
// types, invalid UTF-8 and anything after the object. The error names the field. Errors:
// invalid_request, unsupported_media_type, payload_too_large.
func Decode(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return fault.Invalid("body", "could not be read completely")
	}
	if len(body) > MaxBody {
		return fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", MaxBody)
	}
	if len(strings.TrimSpace(string(body))) == 0 {
		return nil
	}
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	if kind := jsontext.Value(body).Kind(); kind != jsontext.KindBeginObject && jsontext.Value(body).IsValid() {
		return fault.Invalid("body", "must be a JSON object")
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return decodeFault(err)
	}
	return nil
}

func checkMediaType(header string) error {
	mediaType, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || mediaType != "application/json" || (charset != "" && charset != "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "send the body as Content-Type: application/json, in UTF-8")
	}
	return nil
}

func decodeFault(err error) error {
	var semantic *jsonv2.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		field := fieldPath(semantic.JSONPointer)
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return fault.Invalid(field, "is not a field of this request")
		}
		return fault.Invalid(field, "%s", typeMessage(semantic))
	case errors.As(err, &syntactic):
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fault.Invalid(fieldPath(syntactic.JSONPointer), "is given twice")
		}
		return fault.Invalid(fieldPath(syntactic.JSONPointer), "is not valid JSON at byte %d", syntactic.ByteOffset)
	default:
		return fault.Invalid("body", "is not valid JSON")
	}
}

func typeMessage(e *jsonv2.SemanticError) string {
	want := "of another type"
	if e.GoType != nil {
		switch e.GoType.Kind().String() {
		case "int", "int8", "int16", "int32", "int64":
			want = "a whole number"
		case "uint", "uint8", "uint16", "uint32", "uint64":
			want = "a whole number of at least 0"
		case "float32", "float64":
			want = "a number"
		case "string":
			want = "a string"
		case "bool":
			want = "true or false"
		case "slice", "array":
			want = "an array"
		case "struct", "map":
			want = "an object"
		}
	}
	if len(e.JSONValue) > 0 && len(e.JSONValue) <= 40 {
		return "must be " + want + ", not " + string(e.JSONValue)
	}
	return "must be " + want
}

// fieldPath converts a JSON Pointer (RFC 6901) to the notation of problem documents: /rules/0/limit
// becomes rules[0].limit.
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case isIndex(token) && b.Len() > 0:
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

func isIndex(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Query parses the query of r. It refuses duplicate parameters and parameters whose name is not in
// the list allowed. Errors: invalid_request.
func Query(r *http.Request, allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Invalid("query", "is not a valid query string")
	}
	var fields fault.Fields
	for name, v := range values {
		if !slices.Contains(allowed, name) {
			fields.Add(name, "is not a parameter of this call")
		} else if len(v) > 1 {
			fields.Add(name, "is given twice")
		}
	}
	slices.SortFunc(fields, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
	return values, fields.Err()
}

// Write writes a response with the status and body as JSON.
func Write(w http.ResponseWriter, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
	return nil
}

// Degraded sets the header Sluice-Degraded, which marks a response that was produced while a store
// was unavailable. mode names the fallback, for example "limiter-local". Call Degraded before you
// write the response.
func Degraded(w http.ResponseWriter, mode string) { w.Header().Set("Sluice-Degraded", mode) }
