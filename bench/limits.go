package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// plenty is a limit that no benchmark reaches.
const plenty = 1_000_000

func key(prefix string, worker, n int) string { return fmt.Sprintf("%s-%d-%d", prefix, worker, n%16) }

func bucket(name string, limit int64) policy.Rule {
	return policy.Rule{Name: name, Algorithm: policy.TokenBucket, Limit: limit, Window: time.Second, Burst: limit}
}

// sluiceCheck returns a contender that checks keys against a policy with the given rules.
func sluiceCheck(l *ratelimit.Limiter, name string, rules ...policy.Rule) measure.Contender {
	p := policy.Policy{Name: "bench", Rules: rules, NoDenyCache: true}
	return measure.Contender{Name: name, Op: func(ctx context.Context, w, n int) error {
		_, err := l.Check(ctx, ratelimit.Check{Policy: p, Key: key("k", w, n)})
		return err
	}}
}

func checkOneRule(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	constant, own := redis.NewScript("return 1"), db.conn.Client()
	commands := bareScript(`'TIME'`, `'GET', KEYS[1]`, `'SET', KEYS[1], ARGV[1], 'PX', '1000'`)
	state := strings.Repeat("x", 80) // the length of Sluice's state
	rate := redis_rate.NewLimiter(db.peer)
	throttledStore, err := goredisstore.NewCtx(db.peer, "throttled:")
	if err != nil {
		return fmt.Errorf("error starting throttled: %w", err)
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(throttledStore,
		throttled.RateQuota{MaxRate: throttled.PerSec(plenty), MaxBurst: plenty})
	if err != nil {
		return fmt.Errorf("error starting throttled: %w", err)
	}
	ululeStore, err := ulule.NewStore(db.peer)
	if err != nil {
		return fmt.Errorf("error starting ulule: %w", err)
	}
	fixed := limiter.New(ululeStore, limiter.Rate{Period: time.Second, Limit: plenty})
	contenders := []measure.Contender{
		sluiceCheck(ratelimit.New(ctx, db.conn), "sluice", bucket("one", plenty)),
		{Name: "floor", Op: func(ctx context.Context, w, n int) error {
			return constant.Run(ctx, own, []string{key("floor", w, n)}, 1, 2, 3, 4).Err()
		}},
		{Name: bareCommands, Op: func(ctx context.Context, w, n int) error {
			return commands.Run(ctx, own, []string{key("bare", w, n)}, state, 2, 3, 4).Err()
		}},
		{Name: "redis_rate", Op: func(ctx context.Context, w, n int) error {
			_, err := rate.Allow(ctx, key("k", w, n), redis_rate.PerSecond(plenty))
			return err
		}},
		{Name: "throttled", Op: func(ctx context.Context, w, n int) error {
			_, _, err := gcra.RateLimitCtx(ctx, key("k", w, n), 1)
			return err
		}},
		{Name: "ulule", Op: func(ctx context.Context, w, n int) error {
			_, err := fixed.Get(ctx, key("k", w, n))
			return err
		}},
	}
	var bars []report.Bar
	for _, workers := range []int{1, 64} {
		samples, err := measure.Throughput(ctx, s.plan, workers, contenders)
		if err != nil {
			return err
		}
		s.ratios("P3", fmt.Sprintf("check, one rule, %d goroutines", workers), samples,
			versus{"redis_rate", 1,
				s.note("The peer checks one GCRA rule in a script. It has no policies and no degraded mode, and computes times as floats.")},
			versus{"throttled", 1, s.note("The peer uses GET and compare-and-set: two round trips, more under contention.")},
			versus{"ulule", 1,
				s.note("The peer counts a fixed window with INCRBY and PTTL: it reads no clock, and admits up to twice the limit around the boundary of two windows.")},
			versus{"floor", 0.85,
				s.note("An EVALSHA that returns a constant, from Sluice's own client: the cost of the protocol alone.")})
		for _, c := range contenders {
			bars = append(bars, report.Bar{Label: fmt.Sprintf("%s %d", c.Name, workers), Value: samples.Median(c.Name)})
		}
	}
	return s.draw("limits.svg", "Limiter checks, 1 and 64 goroutines", func(path, title string) error {
		return report.Bars(path, title, "checks/s", bars)
	})
}

func checkThreeRules(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	rate := redis_rate.NewLimiter(db.peer)
	samples, err := measure.Throughput(ctx, s.plan, 1, []measure.Contender{
		sluiceCheck(ratelimit.New(ctx, db.conn), "sluice", bucket("a", plenty), bucket("b", plenty),
			bucket("c", plenty)),
		{Name: "redis_rate ×3", Op: func(ctx context.Context, w, n int) error {
			for _, rule := range []string{"a", "b", "c"} {
				if _, err := rate.Allow(ctx, rule+key("k", w, n), redis_rate.PerSecond(plenty)); err != nil {
					return err
				}
			}
			return nil
		}},
	})
	if err != nil {
		return err
	}
	s.ratio("P4", "check, three rules", samples, "redis_rate ×3", 2.5,
		s.note("The peer's three calls are not atomic: the first may charge a request that the third denies."), "")
	return nil
}

func checkDenied(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	rate := redis_rate.NewLimiter(db.peer)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	l := ratelimit.New(listening, db.conn)
	rule := policy.Rule{Name: "one", Algorithm: policy.TokenBucket, Limit: 1, Window: time.Hour, Burst: 1}
	denied := ratelimit.Check{Policy: policy.Policy{Name: "bench", Rules: []policy.Rule{rule}}, Key: "denied"}
	// deny runs before each measured slice. It charges the key until the limiter denies it. During
	// the slice, the limiter answers from its cache of denials.
	deny := func(ctx context.Context) error {
		for {
			d, err := l.Check(ctx, denied)
			if err != nil || !d.Allowed {
				return err
			}
		}
	}
	samples, err := measure.Throughput(ctx, s.plan, 1, []measure.Contender{
		{Name: "sluice", Before: deny, Op: func(ctx context.Context, _, _ int) error {
			d, err := l.Check(ctx, denied)
			if d.Allowed {
				return fmt.Errorf("a denied key was allowed")
			}
			return err
		}},
		{Name: "redis_rate", Op: func(ctx context.Context, _, _ int) error {
			_, err := rate.Allow(ctx, "denied", redis_rate.PerHour(1))
			return err
		}},
	})
	if err != nil {
		return err
	}
	s.ratio("P5", "check of a denied key", samples, "redis_rate", 50,
		s.note("Sluice answers from the instance's memory until retry_after; the peer queries Redis for each check."), "")
	return nil
}

// logSource is the usual exact sliding window: a script that keeps the time of each admitted
// request in a sorted set.
const logSource = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local window, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window))
if redis.call('ZCARD', KEYS[1]) >= limit then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return 1`

func checkSlidingWindow(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	const limit = 1000
	zset := redis.NewScript(logSource)
	l := ratelimit.New(ctx, db.conn)
	check := func(window time.Duration) func(context.Context, int, int) error {
		rule := policy.Rule{Name: "log", Algorithm: policy.SlidingWindow, Limit: limit, Window: window}
		p := policy.Policy{Name: "bench", Rules: []policy.Rule{rule}, NoDenyCache: true}
		return func(ctx context.Context, w, _ int) error {
			_, err := l.Check(ctx, ratelimit.Check{Policy: p, Key: fmt.Sprintf("%s-%d", window, w)})
			return err
		}
	}
	member := 0
	bare := func(window time.Duration) func(context.Context, int, int) error {
		return func(ctx context.Context, w, n int) error {
			member++
			return zset.Run(ctx, db.peer, []string{fmt.Sprintf("zset-%s-%d", window, w)}, window.Microseconds(), limit,
				member).Err()
		}
	}
	for range limit { // fill one window of an hour
		if err := check(time.Hour)(ctx, 0, 0); err != nil {
			return err
		}
		if err := bare(time.Hour)(ctx, 0, 0); err != nil {
			return err
		}
	}
	ours, err := bytesOf(ctx, db.peer, "*1h0m0s-0*")
	if err != nil {
		return err
	}
	theirs, err := bytesOf(ctx, db.peer, "zset-1h0m0s-0")
	if err != nil {
		return err
	}
	ours -= theirs // Sluice's pattern also matches the sorted set's key
	s.add(report.Row{
		ID: "P6", Work: "bytes for each admitted request, limit 1000", Against: "ZSET log",
		Ours:   fmt.Sprintf("%.1f B", ours/limit),
		Theirs: fmt.Sprintf("%.1f B", theirs/limit), Value: ours / theirs, AtMost: 1.0 / 7,
	}, "")
	commands := bareScript(`'TIME'`, `'GET', KEYS[1]`, `'GETRANGE', KEYS[2], '110', '197'`,
		`'SETRANGE', KEYS[2], ARGV[1], 'xxxxxxxxxxx'`, `'SET', KEYS[1], ARGV[2], 'KEEPTTL'`)
	state := strings.Repeat("x", 140) // the length of Sluice's state
	samples, err := measure.Throughput(ctx, s.plan, 1, []measure.Contender{
		{Name: "sluice", Op: check(100 * time.Millisecond)}, {Name: "ZSET log", Op: bare(100 * time.Millisecond)},
		{Name: bareCommands, Op: func(ctx context.Context, _, n int) error {
			return commands.Run(ctx, db.conn.Client(), []string{"bare", "bare:log"}, n%limit*11, state, 3, 4, 5, 6, 7,
				8, 9, 10, 11).Err()
		}},
	})
	if err != nil {
		return err
	}
	s.ratios("P6", "checks with a full window, limit 1000", samples,
		versus{"ZSET log", 1,
			s.note("A script with a sorted set of the admitted times. It returns allowed or denied, without the remaining units or the retry time.")})
	return nil
}

// bytesOf returns the total memory of the keys that match a pattern.
func bytesOf(ctx context.Context, client *redis.Client, pattern string) (float64, error) {
	keys, err := client.Keys(ctx, pattern).Result()
	if err != nil {
		return 0, fmt.Errorf("error listing keys: %w", err)
	}
	var total float64
	for _, k := range keys {
		n, err := client.MemoryUsage(ctx, k, 0).Result()
		if err != nil {
			return 0, fmt.Errorf("error measuring a key: %w", err)
		}
		total += float64(n)
	}
	return total, nil
}
