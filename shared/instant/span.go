package instant

import (
	"math"
	"time"
)

// Milliseconds converts ms to a duration. A number that overflows becomes the longest duration in
// whole milliseconds with the same sign, so that range checks still refuse it.
func Milliseconds(ms int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-longest, min(ms, longest))) * time.Millisecond
}

// CeilMilliseconds converts d to milliseconds, rounded up.
func CeilMilliseconds(d time.Duration) int64 { return ceil(d, time.Millisecond) }

// CeilSeconds converts d to seconds, rounded up.
func CeilSeconds(d time.Duration) int64 { return ceil(d, time.Second) }

func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// FloatMilliseconds converts d to milliseconds with three decimal places, for logs and metrics.
func FloatMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
