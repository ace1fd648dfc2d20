package ratelimit

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const (
	second = int64(1000) // ms
	minute = 60 * second
	hour   = 60 * minute
)

func newRule(algorithm policy.Algorithm, limit, windowMS int64) policy.Rule {
	return policy.Rule{Name: "r", Algorithm: algorithm, Limit: limit, WindowMS: windowMS}
}

func named(name string, r policy.Rule) policy.Rule {
	r.Name = name
	return r
}

// newCheck asks for cost of a key under enforced rules, each call at the store.
func newCheck(key string, cost int64, rules ...policy.Rule) Check {
	return Check{
		Policy: "p", Key: key, Cost: cost, Mode: policy.Enforce, Rules: rules, OnUnavailable: policy.UnavailableLocal,
		LocalShare: 0.1, NoDenyCache: true,
	}
}

// cached is the same check with the deny cache.
func cached(c Check) Check {
	c.NoDenyCache = false
	return c
}

// open makes a limiter as a function has it, on a client of the test's own, that listens already.
func open(t *testing.T, r *redistest.Redis) *Limiter {
	t.Helper()
	l := New(t.Context(), NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 5 * time.Second})))
	require.Eventually(t, func() bool {
		l.denied.mu.Lock()
		defer l.denied.mu.Unlock()
		return l.denied.hearing
	}, 10*time.Second, time.Millisecond)
	return l
}

// ask checks, and fails the test on an error.
func ask(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	decisions, allowed, err := l.Check(t.Context(), []Check{c})
	require.NoError(t, err)
	require.Len(t, decisions, 1)
	require.Equal(t, decisions[0].Allowed, allowed)
	return decisions[0]
}

func peek(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	d, err := l.Peek(t.Context(), c)
	require.NoError(t, err)
	return d
}

// onRedis is the engine on a real Redis, with a clock that the test moves.
func onRedis(t *testing.T) *clocked {
	t.Helper()
	return clockedRedis(redistest.Single(t), start)
}

func clockedRedis(r *redistest.Redis, at int64) *clocked {
	e := NewRedis(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 10 * time.Second}))
	c := &clocked{engine: e, at: at}
	e.now = func() string { return strconv.FormatInt(c.at, 10) }
	return c
}

// at moves the clock to µs after start and decides.
func (c *clocked) do(t *testing.T, after int64, op operation, check Check) verdict {
	t.Helper()
	c.at = start + after
	v, _, err := c.decide(t.Context(), op, []Check{check})
	require.NoError(t, err)
	return v[0]
}

// allows checks at µs after start, charging when it fits.
func (c *clocked) allows(t *testing.T, after int64, check Check) bool {
	t.Helper()
	return c.do(t, after, opCheck, check).fits
}

// greedy is how much of single units passes at µs after start, until one is denied.
func (c *clocked) greedy(t *testing.T, after int64, check Check) int64 {
	t.Helper()
	check.Cost = 1
	for n := range 2*check.Rules[0].Capacity() + 1 {
		if !c.allows(t, after, check) {
			return n
		}
	}
	require.Fail(t, "it never denies", "%+v", check)
	return 0
}

// commands is how often Redis has carried out a command.
func commands(t *testing.T, r *redistest.Redis, name string) int {
	t.Helper()
	text, err := r.Client.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	found := regexp.MustCompile(`cmdstat_` + name + `:calls=(\d+)`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}
