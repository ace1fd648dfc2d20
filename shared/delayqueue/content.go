package delayqueue

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluicehq/sluice/shared/delayqueue/sqstext"
	"github.com/sluicehq/sluice/shared/fault"
)

// checkPayloadSize returns [ErrPayloadTooLarge] if payload is over its limit.
func checkPayloadSize(payload json.RawMessage) error {
	if len(payload) > MaxPayload {
		return fault.New(fault.PayloadTooLarge,
			"the payload is over %d bytes of JSON: store large data elsewhere and send a reference to it", MaxPayload)
	}
	return nil
}

// checkPayload refuses a payload that is not JSON, or that SQS would not accept when the job is due.
func checkPayload(f *fault.Fields, payload json.RawMessage) {
	switch {
	case len(payload) == 0:
		f.Add("payload", "is required; null is a payload")
	case deeperThan(payload, MaxPayloadDepth):
		f.Add("payload", "must be nested at most %d deep", MaxPayloadDepth)
	case !jsontext.Value(payload).IsValid(jsontext.AllowDuplicateNames(true)):
		f.Add("payload", "must be valid JSON in UTF-8")
	case bytes.ContainsRune(payload, '\uFFFE') || bytes.ContainsRune(payload, '\uFFFF'):
		f.Add("payload", `has a character that SQS does not accept, U+FFFE or U+FFFF: write it as \ufffe or \uffff`)
	}
}

// deeperThan reports whether arrays and objects of a JSON text are nested more than limit deep.
func deeperThan(text []byte, limit int) bool {
	if bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= limit {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++ // the escaped character does not end the string
		case c == '"':
			inString = !inString
		case inString:
		case c == '[', c == '{':
			if depth++; depth > limit {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}

// checkHeaders refuses headers that SQS would not accept as message attributes, and values with
// control characters.
func checkHeaders(f *fault.Fields, headers map[string]string) {
	if len(headers) == 0 {
		return
	}
	if len(headers) > MaxHeaders {
		f.Add("headers", "must be at most %d", MaxHeaders)
		return
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		size += len(name) + len(headers[name])
		if problem := headerProblem(name, headers[name]); problem != "" {
			f.Add(headerField(name), "%s", problem)
		}
	}
	if size > MaxHeaderBytes {
		f.Add("headers", "must be at most %d bytes together", MaxHeaderBytes)
	}
}

func headerProblem(name, value string) string {
	switch {
	case sqstext.Reserved(name):
		return "has a reserved prefix"
	case !sqstext.Name(name):
		return "must be a name of 1 to 256 letters, digits and - _ . without a . at its ends or two in a row"
	case !sqstext.Text(value) || strings.ContainsFunc(value, unicode.IsControl):
		return "must be text that is not empty and has no control characters"
	default:
		return ""
	}
}

// headerField returns the path of a header in a request. A name that is too long or not printable is
// left out.
func headerField(name string) string {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(name) > sqstext.MaxName || strings.ContainsFunc(name, unprintable) {
		return "headers"
	}
	return "headers." + name
}

// validTraceparent reports whether s is a W3C traceparent of version 00:
// 00-<32 hex digits>-<16 hex digits>-<2 hex digits>.
func validTraceparent(s string) bool {
	const layout = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh"
	if len(s) != len(layout) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case layout[i] != 'h':
			if c != layout[i] {
				return false
			}
		case c < '0' || c > '9' && c < 'a' || c > 'f':
			return false
		}
	}
	return true
}
