package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// growth measures how the duration of a call depends on the size of the store. Each size has its
// own store, and the stores take turns in each round.
func growth(ctx context.Context, s *suite) error {
	sizes := []int{10_000, 100_000, 1_000_000, 10_000_000}
	keys := []int{1_000, 10_000, 100_000, 1_000_000}
	if s.quick {
		sizes, keys = sizes[:3], keys[:3]
	}
	curves := make(map[string][][2]float64)
	if err := growJobs(ctx, s, sizes, curves); err != nil {
		return err
	}
	if err := growKeys(ctx, s, keys, curves); err != nil {
		return err
	}
	return s.draw("growth.svg", "The cost of a call as the store grows", func(path, title string) error {
		return report.Curves(path, title, "µs", []string{enqueueOne, claimSixty, checkOne}, curves)
	})
}

// The calls that growth measures.
const (
	enqueueOne = "enqueue"
	claimSixty = "claim of 60"
	checkOne   = "limiter check"
)

// grown adds the median duration at each size to the curve of the work, smallest size first. It
// also adds a row that compares the largest size with the smallest.
func (s *suite) grown(work string, sizes []int, took measure.Samples, curves map[string][][2]float64) {
	for _, size := range sizes {
		curves[work] = append(curves[work], [2]float64{float64(size), took.Median(strconv.Itoa(size))})
	}
	s.largest(work, sizes, took, 0, "")
}

// largest adds the row that compares the largest size with the smallest.
func (s *suite) largest(work string, sizes []int, took measure.Samples, note int, why string) {
	first, last := strconv.Itoa(sizes[0]), strconv.Itoa(sizes[len(sizes)-1])
	value, low, high := took.Ratio(last, first)
	s.add(report.Row{
		ID: "P11", Work: work + " with " + last + " entries", Against: "with " + first, Value: value, Low: low,
		High: high, AtMost: 1.3, Note: note,
		Ours: fmt.Sprintf("%.0f µs", took.Median(last)), Theirs: fmt.Sprintf("%.0f µs", took.Median(first)),
	}, why)
}

// micros makes the given number of calls and returns their median duration, in microseconds.
func micros(times int, call func(n int) (time.Duration, error)) (float64, error) {
	var took []float64
	for n := range times {
		d, err := call(n)
		if err != nil {
			return 0, err
		}
		took = append(took, float64(d.Nanoseconds())/1000)
	}
	return measure.Quantile(took, 0.5), nil
}

func timed(call func() error) (time.Duration, error) {
	started := time.Now()
	err := call()
	return time.Since(started), err
}

// pending is a store with scheduled jobs.
type pending struct {
	db   *store
	q    *delayqueue.Queues
	size int
	id   int
}

func fill(ctx context.Context, size int) (*pending, error) {
	db, err := openStore(ctx)
	if err != nil {
		return nil, err
	}
	p := &pending{db: db, size: size}
	if p.q, err = openQueues(db); err != nil {
		db.close()
		return nil, err
	}
	for p.id < size {
		if err := push(ctx, p.q, p.jobs(500, 24*time.Hour)); err != nil {
			db.close()
			return nil, err
		}
	}
	if err := db.peer.ConfigResetStat(ctx).Err(); err != nil {
		db.close()
		return nil, fmt.Errorf("error resetting the statistics: %w", err)
	}
	return p, nil
}

func (p *pending) jobs(count int, delay time.Duration) []delayqueue.Job {
	out := make([]delayqueue.Job, count)
	for i := range out {
		p.id++
		out[i] = delayqueue.Job{ID: fmt.Sprintf("g%d", p.id), Payload: []byte(`{"order":42}`), Delay: delay,
			MaxAttempts: 1}
	}
	return out
}

func growJobs(ctx context.Context, s *suite, sizes []int, curves map[string][][2]float64) error {
	var stores []*pending
	for _, size := range sizes {
		s.progress(fmt.Sprintf("       %d pending jobs…", size))
		p, err := fill(ctx, size)
		if err != nil {
			return err
		}
		defer p.db.close()
		stores = append(stores, p)
	}
	largest := stores[len(stores)-1]
	_, growing, err := measureJobs(ctx, s, stores, s.size(3, 1))
	if err != nil {
		return err
	}
	moving, err := largest.lookup(ctx)
	if err != nil {
		return err
	}
	for _, p := range stores {
		if err := p.finishRehash(ctx); err != nil {
			return err
		}
	}
	enqueues, claims, err := measureJobs(ctx, s, stores, s.plan.Rounds)
	if err != nil {
		return err
	}
	resting, err := largest.lookup(ctx)
	if err != nil {
		return err
	}
	s.grown(enqueueOne, sizes, enqueues, curves)
	s.grown(claimSixty, sizes, claims, curves)
	s.largest(claimSixty+", during the rehash,", sizes, growing,
		s.note("Measured directly after the jobs were enqueued, while Redis rehashes: each access to a hash or sorted set moves one bucket to a larger table, and "+
			"looks in both tables. The other rows are measured after the rehash."),
		fmt.Sprintf("P11: with %d jobs, Redis' HMGET took %.1f µs during the rehash and %.1f µs after it.", largest.size, moving, resting))
	return nil
}

// measureJobs measures an enqueue and a claim on every store. The stores take turns in each round.
func measureJobs(ctx context.Context, s *suite, stores []*pending,
	rounds int) (enqueues, claims measure.Samples, err error) {
	enqueues, claims = make(measure.Samples), make(measure.Samples)
	for range rounds {
		for _, p := range stores {
			one, err := micros(s.size(1000, 400), func(int) (time.Duration, error) {
				batch := p.jobs(1, 24*time.Hour)
				return timed(func() error { return push(ctx, p.q, batch) })
			})
			if err != nil {
				return nil, nil, err
			}
			claim, err := micros(s.size(30, 15), func(int) (time.Duration, error) {
				return claimDue(ctx, p.q, p.jobs(400, 0))
			})
			if err != nil {
				return nil, nil, err
			}
			name := strconv.Itoa(p.size)
			enqueues[name], claims[name] = append(enqueues[name], one), append(claims[name], claim)
		}
	}
	return enqueues, claims, nil
}

// lookup returns the mean duration of the HMGET commands inside Redis, in microseconds. The mean
// covers all commands since the last reset of Redis' statistics, which is at the end of the
// functions fill and finishRehash. Both an enqueue and a claim run HMGET.
func (p *pending) lookup(ctx context.Context) (float64, error) {
	return p.db.info(ctx, "commandstats", "cmdstat_hmget:", "usec_per_call=")
}

// finishRehash reads from every hash and sorted set until Redis has finished rehashing it, and then
// resets Redis' statistics.
func (p *pending) finishRehash(ctx context.Context) error {
	keys, err := p.db.peer.Keys(ctx, "*").Result()
	if err != nil {
		return fmt.Errorf("error listing keys: %w", err)
	}
	nothing := make([]string, 5000)
	for _, key := range keys {
		kind, err := p.db.peer.Type(ctx, key).Result()
		// During a rehash, each lookup moves at least one bucket. Twice as many lookups as an
		// average shard has entries are therefore enough.
		for n := 0; err == nil && n < 2*p.size/p.q.AllShards(); n += len(nothing) {
			switch kind {
			case "hash":
				err = p.db.peer.HMGet(ctx, key, nothing...).Err()
			case "zset":
				err = p.db.peer.ZMScore(ctx, key, nothing...).Err()
			}
		}
		if err != nil {
			return fmt.Errorf("error looking up in %s: %w", key, err)
		}
	}
	return p.db.peer.ConfigResetStat(ctx).Err()
}

// claimDue enqueues the due jobs, then claims and accepts all of them. It returns the duration of
// one of these calls: the call that claims up to 60 jobs of shard 0.
func claimDue(ctx context.Context, q *delayqueue.Queues, due []delayqueue.Job) (time.Duration, error) {
	if err := push(ctx, q, due); err != nil {
		return 0, err
	}
	var took time.Duration
	for shard := range q.AllShards() {
		for most := 60; ; most = 500 { // a shard has about 100 jobs: the first call claims 60, the second the rest
			var claims delayqueue.Claims
			d, err := timed(func() (err error) {
				claims, err = q.Claim(ctx, queue, shard, most, time.Minute)
				return err
			})
			if err != nil {
				return 0, err
			}
			if shard == 0 && most == 60 {
				took = d
			}
			if len(claims.Jobs) > 0 {
				if _, err := q.Accept(ctx, queue, shard, claims.Jobs); err != nil {
					return 0, err
				}
			}
			if most == 500 {
				break
			}
		}
	}
	return took, nil
}

func growKeys(ctx context.Context, s *suite, sizes []int, curves map[string][][2]float64) error {
	var checks []func(n int) error
	for _, size := range sizes {
		s.progress(fmt.Sprintf("       %d limiter keys…", size))
		db, err := openStore(ctx)
		if err != nil {
			return err
		}
		defer db.close()
		check := checkOf(ctx, db)
		if err := inParallel(size, check); err != nil {
			return err
		}
		checks = append(checks, check)
	}
	took := make(measure.Samples)
	for round := range s.plan.Rounds {
		for i, size := range sizes {
			cost, err := micros(s.size(1500, 500), func(n int) (time.Duration, error) {
				key := (round*1500 + n) * 7919 % size // a prime step spreads the calls over all keys
				return timed(func() error { return checks[i](key) })
			})
			if err != nil {
				return err
			}
			took[strconv.Itoa(size)] = append(took[strconv.Itoa(size)], cost)
		}
	}
	s.grown(checkOne, sizes, took, curves)
	return nil
}

// checkOf returns a function that checks the n-th limiter key of a store.
func checkOf(ctx context.Context, db *store) func(n int) error {
	l := ratelimit.New(ctx, db.conn)
	rule := policy.Rule{Name: "day", Algorithm: policy.TokenBucket, Limit: plenty, Window: 24 * time.Hour, Burst: plenty}
	p := policy.Policy{Name: "growth", Rules: []policy.Rule{rule}, NoDenyCache: true}
	return func(n int) error {
		_, err := l.Check(ctx, ratelimit.Check{Policy: p, Key: fmt.Sprintf("key-%d", n), Cost: 10_000})
		return err
	}
}
