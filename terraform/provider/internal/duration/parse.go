// Package duration provides a Terraform string for lengths of time: "1s", "90m", "1h30m", "1.5h",
// "7d". Two values of the same length are equal, however they are written.
package duration

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// unit is a suffix and the length that it stands for.
type unit struct {
	suffix string
	length time.Duration
}

// units returns the units from the longest to the shortest.
func units() []unit {
	const day = 24 * time.Hour
	return []unit{
		{"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
	}
}

// part matches a number with an optional fraction and a unit at the start of a text.
var part = regexp.MustCompile(`^([0-9]{1,16})(?:\.([0-9]{1,9}))?(ms|[wdhms])`)

const examples = `must be a length of time such as "500ms", "1s", "90m", "1h30m" or "7d"`

// errTooLong completes a sentence that starts with the text.
var errTooLong = errors.New("is too long")

// Parse returns the length of a text such as "1h30m". The units are w (7 days), d (24 hours), h, m,
// s and ms; a text may have several, each with a decimal fraction. The length is at least 0, a
// multiple of a millisecond, and at most about 292 years.
func Parse(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New(examples)
	}
	var total time.Duration
	for rest := text; rest != ""; {
		match := part.FindStringSubmatch(rest)
		if match == nil {
			return 0, fmt.Errorf("%s, but is %q", examples, text)
		}
		length, err := parsePart(match[1], match[2], match[3])
		if err == nil && total > math.MaxInt64-length {
			err = errTooLong
		}
		if err != nil {
			return 0, fmt.Errorf("%q %w", text, err)
		}
		total += length
		rest = rest[len(match[0]):]
	}
	return total, nil
}

// parsePart returns the length of integer.fraction units. It computes with integers, because a
// floating-point number would round.
func parsePart(integer, fraction, suffix string) (time.Duration, error) {
	unit := lengthOf(suffix)
	n, err := strconv.ParseInt(integer, 10, 64)
	if err != nil || n > int64(math.MaxInt64/unit/2) {
		return 0, errTooLong
	}
	length := time.Duration(n) * unit
	if fraction == "" {
		return length, nil
	}

	digits, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("has an invalid fraction: %w", err)
	}
	scale := int64(1)
	for range fraction {
		scale *= 10
	}
	// Milliseconds leave enough of int64 for nine digits of a week.
	milliseconds := digits * unit.Milliseconds()
	if milliseconds%scale != 0 {
		return 0, errors.New("is not a multiple of a millisecond")
	}
	return length + time.Duration(milliseconds/scale)*time.Millisecond, nil
}

// lengthOf returns the length of the unit with the suffix, or 0 if there is none.
func lengthOf(suffix string) time.Duration {
	for _, u := range units() {
		if u.suffix == suffix {
			return u.length
		}
	}
	return 0
}

// Format returns the shortest text for the length in days, hours, minutes, seconds and
// milliseconds: "1h30m" for 90 minutes. It drops fractions of a millisecond and returns "0s" for
// lengths below one.
func Format(length time.Duration) string {
	var b strings.Builder
	for _, u := range units()[1:] {
		if n := length / u.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.suffix)
			length %= u.length
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
