package ratelimit

import (
	"slices"
	"sort"

	"github.com/sluicehq/sluice/shared/policy"
)

// ruleState is the state of one rule in memory. Times and durations are in microseconds.
type ruleState interface {
	// advance sets the current time of the state. The other methods calculate for this time.
	advance(at int64)
	// wait returns the time until n cost units fit. It returns 0 if they fit now, and the constant
	// never if they exceed the capacity.
	wait(n int64) int64
	charge(n int64)
	refund(n int64)
	remaining() int64
	// reset returns the time until no earlier charge counts.
	reset() int64
	clone() ruleState
	// definedBy reports whether the state was created for a rule that is equal to r.
	definedBy(r policy.Rule) bool
}

// newRuleState returns the state of a rule without charges. The arithmetic is the same as in the
// Lua scripts.
func newRuleState(r policy.Rule) ruleState {
	base := newRuleBase(r)
	switch r.Algorithm {
	case policy.FixedWindow:
		return &fixedWindow{ruleBase: base}
	case policy.SlidingWindow:
		return &slidingLog{ruleBase: base}
	case policy.SlidingWindowCounter:
		return &slidingCounter{ruleBase: base}
	default:
		return &bucket{ruleBase: base}
	}
}

// ruleBase is the part of a state that all algorithms share.
type ruleBase struct {
	policy.Rule
	window, tick int64 // µs
	ticks        int64 // ticks in a window
	at           int64 // the time of the last advance, µs
}

func newRuleBase(r policy.Rule) ruleBase {
	window, tick := r.Window.Microseconds(), r.Tick().Microseconds()

	return ruleBase{Rule: r, window: window, tick: tick, ticks: window / tick}
}

func (b *ruleBase) definedBy(r policy.Rule) bool { return b.Rule == r }

// bucket implements token_bucket and gcra, which are the same algorithm. It stores a debt: one cost
// unit adds as many debt units as a window has ticks, and each tick drains Limit debt units.
type bucket struct {
	ruleBase
	used, since int64 // the debt, and the time in µs up to which it has been drained
}

func (b *bucket) clone() ruleState { c := *b; return &c }

func (b *bucket) advance(at int64) {
	b.at = at
	if b.used == 0 {
		b.since = at
		return
	}
	elapsed := (at - b.since) / b.tick
	b.since += elapsed * b.tick
	if elapsed > b.used/b.Limit {
		b.used = 0
	} else {
		b.used = max(0, b.used-elapsed*b.Limit)
	}
}

func (b *bucket) wait(n int64) int64 {
	if n > b.Capacity() {
		return never
	}
	over := b.used - (b.Capacity()-n)*b.ticks
	if over <= 0 {
		return 0
	}
	return ceilDiv(over, b.Limit)*b.tick - (b.at - b.since)
}

func (b *bucket) charge(n int64)   { b.used += n * b.ticks }
func (b *bucket) refund(n int64)   { b.used = max(0, b.used-n*b.ticks) }
func (b *bucket) remaining() int64 { return max(0, (b.Capacity()*b.ticks-b.used)/b.ticks) }

func (b *bucket) reset() int64 {
	if b.used == 0 {
		return 0
	}
	return ceilDiv(b.used, b.Limit)*b.tick - (b.at - b.since)
}

// fixedWindow counts in windows that are aligned to the Unix epoch.
type fixedWindow struct {
	ruleBase
	start, count int64
}

func (f *fixedWindow) clone() ruleState { c := *f; return &c }

func (f *fixedWindow) advance(at int64) {
	f.at = at
	if start := at - at%f.window; start != f.start {
		f.start, f.count = start, 0
	}
}

func (f *fixedWindow) wait(n int64) int64 {
	switch {
	case n > f.Limit:
		return never
	case f.count+n <= f.Limit:
		return 0
	default:
		return f.start + f.window - f.at
	}
}

func (f *fixedWindow) charge(n int64)   { f.count += n }
func (f *fixedWindow) refund(n int64)   { f.count = max(0, f.count-n) }
func (f *fixedWindow) remaining() int64 { return max(0, f.Limit-f.count) }

func (f *fixedWindow) reset() int64 {
	if f.count == 0 {
		return 0
	}
	return f.start + f.window - f.at
}

// slidingCounter counts the current window in full, and the previous window in proportion to its
// overlap with the sliding window.
type slidingCounter struct {
	ruleBase
	start, cur, prev int64
}

func (s *slidingCounter) clone() ruleState { c := *s; return &c }

func (s *slidingCounter) advance(at int64) {
	s.at = at
	start := at - at%s.window
	switch start {
	case s.start:
	case s.start + s.window:
		s.start, s.cur, s.prev = start, 0, s.cur
	default:
		s.start, s.cur, s.prev = start, 0, 0
	}
}

func (s *slidingCounter) elapsed() int64 { return (s.at - s.start) / s.tick }

// fitsFrom returns the number of ticks after the start of a window at which n cost units first fit,
// if prev cost units were charged in the window before it.
func (s *slidingCounter) fitsFrom(prev, n int64) int64 {
	if prev == 0 {
		return 0
	}
	return max(0, s.ticks-(s.Limit-n)*s.ticks/prev)
}

func (s *slidingCounter) wait(n int64) int64 {
	into := s.at - s.start
	switch {
	case n > s.Limit:
		return never
	case s.cur+n > s.Limit:
		return s.window + s.fitsFrom(s.cur, n)*s.tick - into
	default:
		e := s.fitsFrom(s.prev, s.cur+n)
		if e <= s.elapsed() {
			return 0
		}
		return e*s.tick - into
	}
}

func (s *slidingCounter) charge(n int64) { s.cur += n }

func (s *slidingCounter) refund(n int64) {
	rest := max(0, n-s.cur)
	s.cur, s.prev = max(0, s.cur-n), max(0, s.prev-rest)
}

func (s *slidingCounter) remaining() int64 {
	return max(0, (s.Limit*s.ticks-s.prev*(s.ticks-s.elapsed()))/s.ticks-s.cur)
}

func (s *slidingCounter) reset() int64 {
	left := s.start + s.window - s.at
	switch {
	case s.cur > 0:
		return left + s.window
	case s.prev > 0:
		return left
	default:
		return 0
	}
}

// slidingLog stores every charge of the window, with the running total of costs after that charge.
type slidingLog struct {
	ruleBase
	charges []logEntry
	base    int64 // the running total before the oldest stored charge
}

type logEntry struct{ at, total int64 }

func (l *slidingLog) clone() ruleState {
	c := *l
	c.charges = slices.Clone(l.charges)
	return &c
}

func (l *slidingLog) advance(at int64) {
	l.at = at
	live := sort.Search(len(l.charges), func(i int) bool { return l.charges[i].at > at-l.window })
	if live > 0 {
		l.base = l.charges[live-1].total
		l.charges = l.charges[live:]
	}
}

func (l *slidingLog) total() int64 {
	if len(l.charges) == 0 {
		return l.base
	}
	return l.charges[len(l.charges)-1].total
}

func (l *slidingLog) wait(n int64) int64 {
	if n > l.Limit {
		return never
	}
	over := l.total() - l.base + n - l.Limit
	if over <= 0 {
		return 0
	}
	i := sort.Search(len(l.charges), func(i int) bool { return l.charges[i].total-l.base >= over })
	return l.charges[i].at + l.window - l.at
}

func (l *slidingLog) charge(n int64) {
	l.charges = append(l.charges, logEntry{l.at, l.total() + n})
}

func (l *slidingLog) refund(n int64) {
	target := max(l.base, l.total()-n)
	i := sort.Search(len(l.charges), func(i int) bool { return l.charges[i].total >= target })
	switch {
	case target == l.base:
		l.charges = nil
	case i < len(l.charges):
		l.charges = l.charges[:i+1]
		l.charges[i].total = target
	}
}

func (l *slidingLog) remaining() int64 { return max(0, l.Limit-(l.total()-l.base)) }

func (l *slidingLog) reset() int64 {
	if len(l.charges) == 0 {
		return 0
	}
	return l.charges[len(l.charges)-1].at + l.window - l.at
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
