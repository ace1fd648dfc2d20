// Package duration provides a Terraform string type for lengths of time: "1s", "90m", "1h30m",
// "1.5h", "7d". Values of the same length are equal in any notation: "1h" equals "60m".
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

// unit is a unit of time: its suffix and its length.
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

// part matches a number and its unit at the start of a text. The number may have a fraction.
var part = regexp.MustCompile(`^([0-9]{1,16})(?:\.([0-9]{1,9}))?(ms|[wdhms])`)

const examples = `must be a length of time such as "500ms", "1s", "90m", "1h30m" or "7d"`

// errTooLong is the end of an error message such as: "9999999999999999w" is too long.
var errTooLong = errors.New("is too long")

// Parse returns the length of a text such as "1h30m". The units are w (7 days), d (24 hours), h, m,
// s and ms. A text may have several numbers with units; each number may have a decimal fraction.
// The length must be a multiple of 1 ms, from 0 to about 292 years.
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

// parsePart returns the length of a number and its unit. For "1.5h", the argument integer is "1",
// fraction is "5", and suffix is "h". parsePart computes with integers, because floating-point
// numbers would round.
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
	// The product fits into an int64: at most nine digits times 604 800 000 ms (a week).
	milliseconds := digits * unit.Milliseconds()
	if milliseconds%scale != 0 {
		return 0, errors.New("is not a multiple of a millisecond")
	}
	return length + time.Duration(milliseconds/scale)*time.Millisecond, nil
}

// lengthOf returns the length of the unit with the suffix, or 0 if no unit has this suffix.
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
// lengths below 1 ms.
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
