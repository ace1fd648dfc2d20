package sqstext

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for text, taken := range map[string]bool{
		"a": true, " ": true, "a\tb\nc\r": true, "é 日本 🙂": true, "\u007f": true, "\uFFFD": true, "\u2028": true,
		// "\xed\xa0\x80" encodes a lone surrogate
		"": false, "\x00": false, "a\x1f": false, "\uFFFE": false, "\uFFFF": false, "\xff": false,
		"\xed\xa0\x80": false,
	} {
		require.Equal(t, taken, Text(text), "%q", text)
	}
}

func TestName(t *testing.T) {
	for name, taken := range map[string]bool{
		"a": true, "A-b_c.9": true, "traceparent": true, strings.Repeat("a", MaxName): true,
		"": false, "a b": false, ".a": false, "a.": false, "a..b": false, "é": false, "a:b": false,
		strings.Repeat("a", MaxName+1): false,
	} {
		require.Equal(t, taken, Name(name), "%q", name)
	}
}

func TestReserved(t *testing.T) {
	for name, reserved := range map[string]bool{
		"sluice-job-id": true, "Sluice-x": true, "AWS.x": true, "amazon.x": true, "awsx": false, "sluice": false,
		"x-sluice-": false,
	} {
		require.Equal(t, reserved, Reserved(name), "%q", name)
	}
}
