package policy

import "time"

// MaxExact is the upper bound of every product in the limiter's integer arithmetic: Lua numbers are
// doubles, which hold integers exactly up to 2^53.
const MaxExact = int64(1) << 53

// Tick returns the resolution of the rule's arithmetic: 1 µs, or 1 ms or 1 s if capacity times
// window would otherwise exceed [MaxExact]. A tick divides the window. Tick returns 0 if no tick is
// coarse enough; such a rule is invalid.
func (r Rule) Tick() time.Duration {
	most := max(r.Capacity(), r.Limit)
	for _, tick := range [...]time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if r.Window%tick == 0 && most < MaxExact/2/int64(r.Window/tick) {
			return tick
		}
	}

	return 0
}
