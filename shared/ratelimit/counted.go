package ratelimit

import (
	"slices"
	"sort"

	"github.com/sluicehq/sluice/shared/policy"
)

// newCounted makes the state of a rule that nothing has been charged to. The math is that of
// scripts/decide.lua.
func newCounted(r policy.Rule) counted {
	base := ruleOf(r)
	switch r.Algorithm {
	case policy.FixedWindow:
		return &fixedWindow{rule: base}
	case policy.SlidingWindow:
		return &exactLog{rule: base}
	case policy.SlidingWindowCounter:
		return &slidingCounter{rule: base}
	default:
		return &bucket{rule: base}
	}
}

// rule is what every state knows of its rule; w is the window in ticks.
type rule struct {
	policy.Rule
	window, tick, w int64
	at              int64
}

func ruleOf(r policy.Rule) rule {
	window, tick := r.WindowMS*1000, r.Tick()
	return rule{Rule: r, window: window, tick: tick, w: window / tick}
}

func (r *rule) same(other policy.Rule) bool { return r.Rule == other }

// bucket is token_bucket and gcra: used is the debt in units of window ticks, drained by Limit each
// tick.
type bucket struct {
	rule
	used, since int64
}

func (b *bucket) clone() counted { c := *b; return &c }

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
		return -1
	}
	over := b.used - (b.Capacity()-n)*b.w
	if over <= 0 {
		return 0
	}
	return ceilDiv(over, b.Limit)*b.tick - (b.at - b.since)
}

func (b *bucket) charge(n int64)   { b.used += n * b.w }
func (b *bucket) refund(n int64)   { b.used = max(0, b.used-n*b.w) }
func (b *bucket) remaining() int64 { return max(0, (b.Capacity()*b.w-b.used)/b.w) }

func (b *bucket) reset() int64 {
	if b.used == 0 {
		return 0
	}
	return ceilDiv(b.used, b.Limit)*b.tick - (b.at - b.since)
}

// fixedWindow counts in windows aligned to the epoch.
type fixedWindow struct {
	rule
	start, count int64
}

func (f *fixedWindow) clone() counted { c := *f; return &c }

func (f *fixedWindow) advance(at int64) {
	f.at = at
	if start := at - at%f.window; start != f.start {
		f.start, f.count = start, 0
	}
}

func (f *fixedWindow) wait(n int64) int64 {
	switch {
	case n > f.Limit:
		return -1
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

// slidingCounter weighs the window before by the part of it that still overlaps.
type slidingCounter struct {
	rule
	start, cur, prev int64
}

func (s *slidingCounter) clone() counted { c := *s; return &c }

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

// fitsFrom is the first tick of a window at which prev of the window before and n more fit.
func (s *slidingCounter) fitsFrom(prev, n int64) int64 {
	if prev == 0 {
		return 0
	}
	return max(0, s.w-(s.Limit-n)*s.w/prev)
}

func (s *slidingCounter) wait(n int64) int64 {
	into := s.at - s.start
	switch {
	case n > s.Limit:
		return -1
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
	return max(0, (s.Limit*s.w-s.prev*(s.w-s.elapsed()))/s.w-s.cur)
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

// exactLog keeps every admitted instant of the window, with the running total after it.
type exactLog struct {
	rule
	admitted []admission
	base     int64 // the running total before the first
}

type admission struct{ at, total int64 }

func (l *exactLog) clone() counted {
	c := *l
	c.admitted = slices.Clone(l.admitted)
	return &c
}

func (l *exactLog) advance(at int64) {
	l.at = at
	live := sort.Search(len(l.admitted), func(i int) bool { return l.admitted[i].at > at-l.window })
	if live > 0 {
		l.base = l.admitted[live-1].total
		l.admitted = l.admitted[live:]
	}
}

func (l *exactLog) total() int64 {
	if len(l.admitted) == 0 {
		return l.base
	}
	return l.admitted[len(l.admitted)-1].total
}

func (l *exactLog) wait(n int64) int64 {
	if n > l.Limit {
		return -1
	}
	over := l.total() - l.base + n - l.Limit
	if over <= 0 {
		return 0
	}
	i := sort.Search(len(l.admitted), func(i int) bool { return l.admitted[i].total-l.base >= over })
	return l.admitted[i].at + l.window - l.at
}

func (l *exactLog) charge(n int64) {
	l.admitted = append(l.admitted, admission{l.at, l.total() + n})
}

func (l *exactLog) refund(n int64) {
	target := max(l.base, l.total()-n)
	i := sort.Search(len(l.admitted), func(i int) bool { return l.admitted[i].total >= target })
	switch {
	case target == l.base:
		l.admitted = nil
	case i < len(l.admitted):
		l.admitted = l.admitted[:i+1]
		l.admitted[i].total = target
	}
}

func (l *exactLog) remaining() int64 { return max(0, l.Limit-(l.total()-l.base)) }

func (l *exactLog) reset() int64 {
	if len(l.admitted) == 0 {
		return 0
	}
	return l.admitted[len(l.admitted)-1].at + l.window - l.at
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
