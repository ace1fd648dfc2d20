package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/ratelimit"
)

// growth shows that work costs the same however much is there already.
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
	names := []string{"enqueue", "claim of 100", "limiter check"}
	for _, name := range names {
		curve := curves[name]
		first, last := curve[0], curve[len(curve)-1]
		s.add(report.Row{
			ID: "P11", Work: fmt.Sprintf("%s with %.0f there", name, last[0]), Against: fmt.Sprintf("with %.0f", first[0]),
			Ours: fmt.Sprintf("%.0f µs", last[1]), Theirs: fmt.Sprintf("%.0f µs", first[1]), Value: last[1] / first[1], AtMost: 1.3,
		}, "")
	}
	return s.draw("growth.svg", "The cost of a call as the store grows", func(path, title string) error {
		return report.Curves(path, title, "µs", names, curves)
	})
}

// micros is the median time of so many calls.
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

func growJobs(ctx context.Context, s *suite, sizes []int, curves map[string][][2]float64) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	q, err := openQueues(db)
	if err != nil {
		return err
	}
	id, there := 0, 0
	small := func(count int, delay time.Duration) []delayqueue.Job {
		out := make([]delayqueue.Job, count)
		for i := range out {
			id++
			out[i] = delayqueue.Job{ID: fmt.Sprintf("g%d", id), Payload: []byte(`{"order":42}`), Delay: delay, MaxAttempts: 1}
		}
		return out
	}
	for _, size := range sizes {
		s.progress(fmt.Sprintf("       %d pending jobs…", size))
		for ; there < size; there += 500 {
			if err := push(ctx, q, small(500, 24*time.Hour)); err != nil {
				return err
			}
		}
		one, err := micros(s.size(3000, 1000), func(int) (time.Duration, error) {
			batch := small(1, 24*time.Hour)
			return timed(func() error { return push(ctx, q, batch) })
		})
		if err != nil {
			return err
		}
		claim, err := micros(s.size(100, 30), func(int) (time.Duration, error) { return claimHundred(ctx, q, small(400, 0)) })
		if err != nil {
			return err
		}
		curves["enqueue"] = append(curves["enqueue"], [2]float64{float64(size), one})
		curves["claim of 100"] = append(curves["claim of 100"], [2]float64{float64(size), claim})
	}
	return nil
}

// claimHundred makes jobs due, takes a hundred of one shard in one call, and clears the rest away.
func claimHundred(ctx context.Context, q *delayqueue.Queues, due []delayqueue.Job) (time.Duration, error) {
	if err := push(ctx, q, due); err != nil {
		return 0, err
	}
	var took time.Duration
	for shard := range q.AllShards() {
		for most := 60; ; most = 500 { // a shard has about a hundred: the first call takes sixty of any of them
			var claims delayqueue.Claims
			d, err := timed(func() (err error) { claims, err = q.Claim(ctx, queue, shard, most, time.Minute); return err })
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
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	l := ratelimit.New(ctx, ratelimit.NewRedis(db.conn))
	rule := policy.Rule{Name: "day", Algorithm: policy.TokenBucket, Limit: plenty, WindowMS: 86_400_000, Burst: plenty}
	check := func(n int) error {
		_, _, err := l.Check(ctx, []ratelimit.Check{{
			Policy: "growth", Key: fmt.Sprintf("key-%d", n), Cost: 10_000, Mode: policy.Enforce, Rules: []policy.Rule{rule}, NoDenyCache: true,
		}})
		return err
	}
	there := 0
	for _, size := range sizes {
		s.progress(fmt.Sprintf("       %d limiter keys…", size))
		if err := inParallel(size-there, func(i int) error { return check(there + i) }); err != nil {
			return err
		}
		there = size
		cost, err := micros(s.size(5000, 1500), func(n int) (time.Duration, error) {
			return timed(func() error { return check(n * (size / 5000 * 1) % size) })
		})
		if err != nil {
			return err
		}
		curves["limiter check"] = append(curves["limiter check"], [2]float64{float64(size), cost})
	}
	return nil
}
