package delayqueue

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/internal/sqstext"
)

// checkHeaders rejects headers that SQS does not accept as message attributes, and values with
// control characters.
func checkHeaders(f *fault.Fields, headers map[string]string) {
	if len(headers) == 0 {
		return
	}
	if len(headers) > MaxHeaders {
		f.Add("headers", "must have at most %d entries", MaxHeaders)
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
		f.Add("headers", "must be at most %d bytes in total", MaxHeaderBytes)
	}
}

func headerProblem(name, value string) string {
	switch {
	case sqstext.Reserved(name):
		return "has a reserved prefix"
	case !sqstext.Name(name):
		return "must be 1 to 256 letters, digits, - _ or ., without a . at either end or two in a row"
	case !sqstext.Text(value) || strings.ContainsFunc(value, unicode.IsControl):
		return "must be non-empty text without control characters"
	default:
		return ""
	}
}

// headerField returns the path of a header in a request. If the name is too long or unprintable, it
// returns only "headers".
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
