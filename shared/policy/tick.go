package policy

import "time"

// MaxExact is the upper bound of every product in the limiter's integer arithmetic: Lua numbers are
// doubles, which represent all integers up to 2^53 exactly.
const MaxExact = int64(1) << 53

// Tick returns the time resolution of the rule's arithmetic: the smallest of 1 µs, 1 ms and 1 s
// that divides the window and keeps the products below [MaxExact]. If there is none, Tick returns
// 0, and the rule is invalid.
func (r Rule) Tick() time.Duration {
	most := max(r.Capacity(), r.Limit)
	for _, tick := range [...]time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if r.Window%tick == 0 && most < MaxExact/2/int64(r.Window/tick) {
			return tick
		}
	}

	return 0
}
