package policy

// MaxExact is the bound below which every product of the limiter's integer math stays: a double,
// which Lua's numbers are, holds integers up to 2^53.
const MaxExact = int64(1) << 53

// Capacity is the most that may pass at once: the burst of a bucket, else the limit.
func (r Rule) Capacity() int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Limit
}

// Tick is the resolution in microseconds at which the rule counts time: 1 µs, or 1 ms or 1 s for
// windows so long that capacity times window would pass [MaxExact]. It divides the window. It is 0
// when no tick is coarse enough: such a rule is not valid.
func (r Rule) Tick() int64 {
	window := r.WindowMS * 1000
	for _, tick := range []int64{1, 1000, 1_000_000} {
		if window%tick == 0 && max(r.Capacity(), r.Limit) < MaxExact/2/(window/tick) {
			return tick
		}
	}
	return 0
}

// WorstCase is the most that any stretch of one window's length can admit.
//
// fixed_window: 2L, by the end of one window and the beginning of the next. sliding_window: L.
// sliding_window_counter: 2L - 1, since it takes the window before as evenly spread. token_bucket
// and gcra: burst + L, a full bucket and what drips in meanwhile.
func (r Rule) WorstCase() int64 {
	switch r.Algorithm {
	case SlidingWindow:
		return r.Limit
	case FixedWindow:
		return 2 * r.Limit
	case SlidingWindowCounter:
		return 2*r.Limit - 1
	default:
		return r.Capacity() + r.Limit
	}
}
