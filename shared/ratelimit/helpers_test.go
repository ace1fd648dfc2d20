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
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

// micros converts a duration to µs, the unit of the stores.
func micros(d time.Duration) int64 { return d.Microseconds() }

func newRule(algorithm policy.Algorithm, limit int64, window time.Duration) policy.Rule {
	return policy.Rule{Name: "r", Algorithm: algorithm, Limit: limit, Window: window}
}

func named(name string, r policy.Rule) policy.Rule {
	r.Name = name
	return r
}

// newCheck returns a check in enforce mode, with the deny cache disabled.
func newCheck(key string, cost int64, rules ...policy.Rule) Check {
	return Check{Policy: policy.Policy{Name: "p", Rules: rules, NoDenyCache: true}, Key: key, Cost: cost}
}

// cached returns c with the deny cache enabled.
func cached(c Check) Check {
	c.Policy.NoDenyCache = false
	return c
}

// under returns c with different rules.
func under(c Check, rules ...policy.Rule) Check {
	c.Policy.Rules = rules
	return c
}

// open returns a limiter for r. It waits until the limiter's subscription works.
func open(t *testing.T, r *redistest.Redis) *Limiter {
	t.Helper()
	l := New(t.Context(), redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 5 * time.Second}))
	require.Eventually(t, func() bool {
		l.denied.mu.Lock()
		defer l.denied.mu.Unlock()
		return l.denied.subscribed
	}, 10*time.Second, time.Millisecond)
	return l
}

// check returns the decision of l.Check. It fails the test on an error.
func check(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	d, err := l.Check(t.Context(), c)
	require.NoError(t, err)
	return d
}

func peek(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	d, err := l.Peek(t.Context(), c)
	require.NoError(t, err)
	return d
}

func refund(t *testing.T, l *Limiter, c Check) Decision {
	t.Helper()
	d, err := l.Refund(t.Context(), c)
	require.NoError(t, err)
	return d
}

// clocked is a store with a clock that the test sets.
type clocked struct {
	store
	now int64 // µs
}

const start = int64(1_750_000_000_000_000) // the time at which most tests start, in µs: a whole second

// onRedis returns a store on a real Redis. The test sets the clock of the store.
func onRedis(t *testing.T) *clocked {
	t.Helper()
	return clockedRedis(redistest.Single(t), start)
}

func clockedRedis(r *redistest.Redis, now int64) *clocked {
	s := newRedisStore(redisconn.FromClient(r.Client, redisconn.Config{CallTimeout: 10 * time.Second}))
	c := &clocked{store: s, now: now}
	s.now = func() time.Time { return time.UnixMicro(c.now) }
	return c
}

// do sets the clock to start + after µs, applies op to the check and returns the verdict.
func (c *clocked) do(t *testing.T, after int64, op operation, check Check) verdict {
	t.Helper()
	c.now = start + after
	v, _, err := c.decide(t.Context(), op, []charge{check.charge()})
	require.NoError(t, err)
	return v[0]
}

// allows makes a check at start + after µs and reports whether it fits. If so, it is charged.
func (c *clocked) allows(t *testing.T, after int64, check Check) bool {
	t.Helper()
	return c.do(t, after, opCheck, check).fits
}

// exhaust makes checks of cost 1 at start + after µs until one is denied. It returns the number of
// allowed checks.
func (c *clocked) exhaust(t *testing.T, after int64, check Check) int64 {
	t.Helper()
	check.Cost = 1
	for n := range 2*check.Policy.Rules[0].Capacity() + 1 {
		if !c.allows(t, after, check) {
			return n
		}
	}
	require.Fail(t, "no check was denied", "%+v", check)
	return 0
}

func algorithms() []policy.Algorithm {
	return []policy.Algorithm{policy.FixedWindow, policy.SlidingWindow, policy.SlidingWindowCounter, policy.TokenBucket,
		policy.GCRA}
}

// commands returns the number of times that Redis has executed a command.
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
