// Package sqstext checks texts by the rules of SQS, so that Sluice rejects an invalid job when the
// job is enqueued, not when it is due.
//
// See https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
// and
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html.
package sqstext

import (
	"strings"
	"unicode/utf8"
)

// MaxName is the maximum length of an attribute's name, in bytes.
const MaxName = 256

// Text reports whether SQS accepts s as the body of a message or the value of an attribute: one or
// more of the characters #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD and #x10000 to #x10FFFF.
func Text(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if (r < ' ' && r != '\t' && r != '\n' && r != '\r') || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// Name reports whether SQS accepts s as the name of an attribute: 1 to MaxName letters, digits and
// - _ . characters. A name does not start or end with a period, and has no two periods in a row.
func Name(s string) bool {
	if s == "" || len(s) > MaxName || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// Reserved reports whether the name of an attribute is reserved for AWS or Sluice. It ignores case.
func Reserved(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "sluice-") || strings.HasPrefix(lower, "aws.") ||
		strings.HasPrefix(lower, "amazon.")
}
