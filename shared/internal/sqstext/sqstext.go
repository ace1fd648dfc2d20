// Package sqstext tells which texts SQS takes, so that a job is refused when it comes in and not
// when it is due.
//
// See https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
// and
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html.
package sqstext

import (
	"strings"
	"unicode/utf8"
)

// MaxName is the greatest length of an attribute's name in bytes.
const MaxName = 256

// Text tells whether a message's body or an attribute's value may be s: #x9, #xA, #xD, #x20 to
// #xD7FF, #xE000 to #xFFFD and #x10000 to #x10FFFF, and not empty.
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

// Name tells whether an attribute's name may be s: 1 to MaxName letters, digits and - _ . without a
// . at its ends or two in a row.
func Name(s string) bool {
	if s == "" || len(s) > MaxName || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// Reserved tells whether an attribute's name belongs to AWS or to Sluice, in any case.
func Reserved(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "sluice-") || strings.HasPrefix(lower, "aws.") ||
		strings.HasPrefix(lower, "amazon.")
}
