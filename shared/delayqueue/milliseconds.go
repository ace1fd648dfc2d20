package delayqueue

import "time"

// Redis stores times in whole milliseconds. These functions convert times to and from milliseconds.
// Package instant converts durations.

// unixMS returns t in milliseconds since the epoch, rounded up, so that a job that is due at t is
// never early.
func unixMS(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}

// fromUnixMS converts milliseconds since the epoch to a time in UTC.
func fromUnixMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// fromOptionalUnixMS is like fromUnixMS, but converts 0 to the zero time.
func fromOptionalUnixMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return fromUnixMS(ms)
}
