// Package human parses and formats durations and times for people.
package human

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var errDuration = errors.New(`must be a number with a unit, such as 500ms, 90s, 5m, 1h30m, 2d or 1w`)

// ParseDuration parses a duration as time.ParseDuration does, with two more units, days and weeks:
// "1d12h". Every number except 0 needs a unit.
func ParseDuration(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	if rest == "" {
		return 0, errDuration
	}
	var total time.Duration
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"w", week}, {"d", day}} {
		count, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(count, 64)
		if err != nil || !(n >= 0 && n <= float64((1<<62)/unit.length)) { // also refuses NaN
			return 0, errDuration
		}
		total += time.Duration(n * float64(unit.length))
		rest = after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || total+d < total {
			return 0, errDuration
		}
		total += d
	}
	if negative {
		total = -total
	}
	return total, nil
}

// Duration formats d in its two largest units: "2d3h", "1h30m", "5m12s". It formats a duration
// below one minute as "42s", "3.2s" or "85ms".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	switch {
	case d >= day:
		return pair(d, day, "d", time.Hour, "h")
	case d >= time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "m")
	case d >= time.Minute:
		return pair(d, time.Minute, "m", time.Second, "s")
	case d >= 10*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d >= time.Second:
		return strconv.FormatFloat(float64(d/(100*time.Millisecond))/10, 'f', -1, 64) + "s"
	default:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	}
}

func pair(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	out := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		out += fmt.Sprintf("%d%s", rest, smallName)
	}
	return out
}

// When formats the time t relative to the given current time: "in 5m", "3s ago", "now".
func When(t, now time.Time) string {
	switch d := t.Sub(now).Round(time.Millisecond); {
	case d >= time.Second:
		return "in " + Duration(d)
	case d <= -time.Second:
		return Duration(-d) + " ago"
	default:
		return "now"
	}
}

// Instant formats the time t in the time zone of the given current time, and adds the result of
// When: "2026-01-02 15:04:05 (in 5m)". It formats the zero time as "-".
func Instant(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(now.Location()).Format(time.DateTime) + " (" + When(t, now) + ")"
}
