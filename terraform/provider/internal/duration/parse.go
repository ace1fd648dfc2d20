// Package duration is a Terraform string for lengths of time as people write them: "1s", "90m",
// "1h30m", "1.5h", "7d". Two that are equally long are the same value, however they are written.
package duration

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// unit is a suffix and its length in milliseconds.
type unit struct {
	suffix string
	ms     int64
}

// units returns the suffixes, the longest length first.
func units() []unit {
	return []unit{{"w", 7 * 86_400_000}, {"d", 86_400_000}, {"h", 3_600_000}, {"m", 60_000}, {"s", 1000}, {"ms", 1}}
}

var part = regexp.MustCompile(`^([0-9]{1,16})(?:\.([0-9]{1,9}))?(ms|[wdhms])`)

const examples = `must be a length of time such as "500ms", "1s", "90m", "1h30m" or "7d"`

// Parse returns the milliseconds of a text such as "1h30m". The units are w (7 days), d (24 hours),
// h, m, s and ms; there may be several, each with a decimal fraction. It must be a whole number of
// milliseconds, and not negative.
func Parse(text string) (int64, error) {
	if text == "" {
		return 0, errors.New(examples)
	}
	total := int64(0)
	for rest := text; rest != ""; {
		match := part.FindStringSubmatch(rest)
		if match == nil {
			return 0, fmt.Errorf("%s, and is %q", examples, text)
		}
		ms, err := milliseconds(match[1], match[2], match[3])
		if err != nil || total > math.MaxInt64-ms {
			return 0, fmt.Errorf("%q %w", text, errors.Join(err, overflow(err)))
		}
		total += ms
		rest = rest[len(match[0]):]
	}
	return total, nil
}

func overflow(err error) error {
	if err == nil {
		return errors.New("is too long")
	}
	return nil
}

// milliseconds is whole.fraction units, in integers.
func milliseconds(whole, fraction, suffix string) (int64, error) {
	length := int64(1)
	for _, u := range units() {
		if u.suffix == suffix {
			length = u.ms
		}
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > math.MaxInt64/length/2 {
		return 0, errors.New("is too long")
	}
	n *= length
	if fraction == "" {
		return n, nil
	}
	digits, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("has a fraction that cannot be read: %w", err)
	}
	scale := int64(1)
	for range fraction {
		scale *= 10
	}
	if digits*length%scale != 0 {
		return 0, errors.New("is not a whole number of milliseconds")
	}
	return n + digits*length/scale, nil
}

// Format writes milliseconds, at least 0, in the shortest way that uses days, hours, minutes,
// seconds and milliseconds: 5 400 000 is "1h30m".
func Format(ms int64) string {
	if ms <= 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range units()[1:] {
		if n := ms / u.ms; n > 0 {
			b.WriteString(strconv.FormatInt(n, 10) + u.suffix)
			ms %= u.ms
		}
	}
	return b.String()
}
