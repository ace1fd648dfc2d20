package ratelimit

import (
	"math/big"
	"slices"

	"github.com/sluicehq/sluice/shared/policy"
)

// model implements the definition of a rule in the simplest way: it keeps every admitted unit and
// calculates in exact fractions. It is slow and shares no code with the stores.
type model struct {
	rule  policy.Rule
	units []int64 // the time of each admitted unit, µs; only for windows

	level *big.Rat // tokens; only for buckets
	since int64
}

func newModel(r policy.Rule, at int64) *model {
	return &model{rule: r, level: big.NewRat(r.Capacity(), 1), since: at}
}

func (m *model) clone() *model {
	c := *m
	c.units = slices.Clone(m.units)
	c.level = new(big.Rat).Set(m.level)
	return &c
}

func (m *model) window() int64 { return micros(m.rule.Window) }
func (m *model) isBucket() bool {
	return m.rule.Algorithm == policy.TokenBucket || m.rule.Algorithm == policy.GCRA
}

// refill adds Limit tokens for each window, in whole ticks.
func (m *model) refill(at int64) {
	tick := micros(m.rule.Tick())
	ticks := (at - m.since) / tick
	m.since += ticks * tick
	m.level.Add(m.level, new(big.Rat).Mul(big.NewRat(ticks*tick, 1), big.NewRat(m.rule.Limit, m.window())))
	if full := big.NewRat(m.rule.Capacity(), 1); m.level.Cmp(full) > 0 {
		m.level.Set(full)
	}
}

// between returns the number of units admitted in (from, to].
func (m *model) between(from, to int64) int64 {
	n := int64(0)
	for _, u := range m.units {
		if u > from && u <= to {
			n++
		}
	}
	return n
}

// used returns the units of a window rule that count against the limit at a time.
func (m *model) used(at int64) *big.Rat {
	w := m.window()
	start := at - at%w
	switch m.rule.Algorithm {
	case policy.FixedWindow:
		return big.NewRat(m.between(start-1, start+w-1), 1)
	case policy.SlidingWindow:
		return big.NewRat(m.between(at-w, at), 1)
	default:
		tick := micros(m.rule.Tick())
		into := (at - start) / tick * tick
		weighted := big.NewRat(m.between(start-w-1, start-1)*(w-into), w)
		return weighted.Add(weighted, big.NewRat(m.between(start-1, start+w-1), 1))
	}
}

func (m *model) fits(n, at int64) bool {
	if m.isBucket() {
		c := m.clone()
		c.refill(at)
		return c.level.Cmp(big.NewRat(n, 1)) >= 0
	}
	return new(big.Rat).Add(m.used(at), big.NewRat(n, 1)).Cmp(big.NewRat(m.rule.Limit, 1)) <= 0
}

func (m *model) remaining(at int64) int64 {
	if m.isBucket() {
		c := m.clone()
		c.refill(at)
		return floorRat(c.level)
	}
	return max(0, floorRat(new(big.Rat).Sub(big.NewRat(m.rule.Limit, 1), m.used(at))))
}

// full reports whether the rule is full, that is, whether no admitted unit still counts.
func (m *model) full(at int64) bool {
	if m.isBucket() {
		c := m.clone()
		c.refill(at)
		return c.level.Cmp(big.NewRat(m.rule.Capacity(), 1)) == 0
	}
	if m.rule.Algorithm == policy.SlidingWindowCounter { // the previous window counts until the current one ends
		w := m.window()
		return m.between(at-at%w-w-1, at) == 0
	}
	return m.used(at).Sign() == 0
}

func (m *model) charge(n, at int64) {
	if m.isBucket() {
		m.refill(at)
		m.level.Sub(m.level, big.NewRat(n, 1))
		return
	}
	for range n {
		m.units = append(m.units, at)
	}
}

// refund removes the newest units that still count.
func (m *model) refund(n, at int64) {
	if m.isBucket() {
		m.refill(at)
		m.level.Add(m.level, big.NewRat(n, 1))
		if full := big.NewRat(m.rule.Capacity(), 1); m.level.Cmp(full) > 0 {
			m.level.Set(full)
		}
		return
	}
	oldest := at - m.window() // exclusive
	switch m.rule.Algorithm {
	case policy.FixedWindow:
		oldest = at - at%m.window() - 1
	case policy.SlidingWindowCounter:
		oldest = at - at%m.window() - m.window() - 1
	default:
	}
	for ; n > 0 && len(m.units) > 0 && m.units[len(m.units)-1] > oldest; n-- {
		m.units = m.units[:len(m.units)-1]
	}
}

func floorRat(r *big.Rat) int64 {
	q := new(big.Int)
	q.Div(r.Num(), r.Denom()) // Euclidean division by a positive denominator is the floor
	return q.Int64()
}
