package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/shared/delayqueue"
)

const queue = "bench"

// payload returns 200 bytes of JSON, different for each n.
func payload(n int) json.RawMessage {
	text := fmt.Sprintf(`{"n":%d,"fill":"`, n)
	return json.RawMessage(text + strings.Repeat("x", 200-len(text)-2) + `"}`)
}

func openQueues(db *store) (*delayqueue.Queues, error) {
	q, err := delayqueue.New(db.conn, delayqueue.Config{})
	if err != nil {
		return nil, fmt.Errorf("error opening the queues: %w", err)
	}
	return q, nil
}

// jobs returns new jobs with numbered IDs: if first is 100 and count is 3, the IDs are job-100,
// job-101 and job-102. The numbers let several batches have distinct IDs.
func jobs(first, count int, delay time.Duration) []delayqueue.Job {
	out := make([]delayqueue.Job, count)
	for i := range out {
		out[i] = delayqueue.Job{ID: fmt.Sprintf("job-%d", first+i), Payload: payload(first + i), Delay: delay,
			MaxAttempts: 1}
	}
	return out
}

// push enqueues a batch, and fails if one of its jobs was not accepted.
func push(ctx context.Context, q *delayqueue.Queues, batch []delayqueue.Job) error {
	for _, result := range q.Enqueue(ctx, queue, batch) {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

func enqueue(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	q, err := openQueues(db)
	if err != nil {
		return err
	}
	peer := asynq.NewClientFromRedisClient(db.peer)
	id := 0
	next := func(n int) int { id += n; return id }
	one := []measure.Contender{
		{Name: "sluice", Before: db.flush, Op: func(ctx context.Context, _, _ int) error {
			return push(ctx, q, jobs(next(1), 1, time.Hour))
		}},
		{Name: "asynq", Before: db.flush, Op: func(ctx context.Context, _, _ int) error {
			_, err := peer.EnqueueContext(ctx, asynq.NewTask("bench", payload(next(1))), asynq.ProcessIn(time.Hour))
			return err
		}},
		{Name: "bare ZADD", Before: db.flush, Op: func(ctx context.Context, _, _ int) error {
			return db.peer.ZAdd(ctx, "due", redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()),
				Member: string(payload(next(1)))}).Err()
		}},
	}
	bare := bareScript(`'TIME'`, `'HMGET', KEYS[3], ARGV[3]`, `'HSET', KEYS[3], ARGV[3], ARGV[6]`,
		`'ZADD', KEYS[1], ARGV[4], ARGV[3]`)
	one = append(one, measure.Contender{Name: bareCommands, Before: db.flush,
		Op: func(ctx context.Context, _, _ int) error {
			n := next(1)
			id, due := fmt.Sprintf("job-%d", n), time.Now().Add(time.Hour).UnixMilli()
			return bare.Run(ctx, db.conn.Client(), []string{"{q}:due", "{q}:done", "{q}:jobs"}, "channel", "what", id, due,
				1, []byte(payload(n))).Err()
		}})
	samples, err := measure.Throughput(ctx, s.plan, 1, one)
	if err != nil {
		return err
	}
	s.ratios("P7", "enqueue one", samples,
		versus{"asynq", 1.2,
			s.note("asynq's Enqueue with ProcessIn writes a hash and a sorted set, with a time from the caller's clock. A task's ID is unique only while the task waits.")})
	const size = 100
	batch := []measure.Contender{{
		Name: "sluice", Before: db.flush, Units: size,
		Op: func(ctx context.Context, _, _ int) error { return push(ctx, q, jobs(next(size), size, time.Hour)) },
	}, one[1], one[2]}
	batches, err := measure.Throughput(ctx, s.plan, 1, batch)
	if err != nil {
		return err
	}
	spent, err := redisMicros(ctx, db, 100*size, func(ctx context.Context) error {
		for range 100 {
			if err := push(ctx, q, jobs(next(size), size, time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	noBatch := s.note("The peer has no batch call: it makes one call for each job.")
	why := fmt.Sprintf("P7: a job in a batch takes %.1f µs, of which Redis spends %.1f µs.",
		1e6/batches.Median("sluice"), spent)
	s.ratio("P7", "enqueue in batches of 100", batches, "asynq", 8, noBatch, why)
	s.ratio("P7", "enqueue in batches of 100", batches, "bare ZADD", 1, noBatch, why)
	return s.draw("enqueue.svg", "Jobs enqueued, one goroutine", func(path, title string) error {
		return report.Bars(path, title, "jobs/s", []report.Bar{
			{Label: "sluice", Value: samples.Median("sluice")}, {Label: "asynq", Value: samples.Median("asynq")},
			{Label: "bare ZADD", Value: samples.Median("bare ZADD")},
			{Label: "sluice ×100", Value: batches.Median("sluice")},
		})
	})
}

func jobMemory(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	q, err := openQueues(db)
	if err != nil {
		return err
	}
	peer := asynq.NewClientFromRedisClient(db.peer)
	count := s.size(100_000, 20_000)
	fill := func(add func(n int) error, step int) (float64, error) {
		if err := db.flush(ctx); err != nil {
			return 0, err
		}
		before, err := db.used(ctx)
		if err != nil {
			return 0, err
		}
		for n := 0; n < count; n += step {
			if err := add(n); err != nil {
				return 0, err
			}
		}
		after, err := db.used(ctx)
		return (after - before) / float64(count), err
	}
	ours, err := fill(func(n int) error { return push(ctx, q, jobs(n, 100, time.Hour)) }, 100)
	if err != nil {
		return err
	}
	theirs, err := fill(func(n int) error {
		_, err := peer.EnqueueContext(ctx, asynq.NewTask("bench", payload(n)), asynq.ProcessIn(time.Hour))
		return err
	}, 1)
	if err != nil {
		return err
	}
	bare, err := fill(func(n int) error {
		return db.peer.ZAdd(ctx, "due", redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()),
			Member: string(payload(n))}).Err()
	}, 1)
	if err != nil {
		return err
	}
	plain, err := fill(func(n int) error {
		id, at := fmt.Sprintf("job-%d", n), strconv.Itoa(n%q.Shards())
		_, err := db.peer.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, "jobs"+at, id, []byte(payload(n)))
			p.ZAdd(ctx, "due"+at, redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: id})
			return nil
		})
		return err
	}, 1)
	if err != nil {
		return err
	}
	work := fmt.Sprintf("memory for a pending job, 200 B, %d jobs", count)
	for _, against := range []struct {
		name         string
		bytes, bound float64
	}{{"asynq", theirs, 0.5}, {"bare ZADD", bare, 1.5}} {
		s.add(report.Row{
			ID: "P8", Work: work, Against: against.name, Ours: fmt.Sprintf("%.0f B", ours),
			Theirs: fmt.Sprintf("%.0f B", against.bytes),
			Value:  ours / against.bytes, AtMost: against.bound,
		}, fmt.Sprintf("P8: a sorted set of the IDs and a hash of the payloads alone take %.0f B for each job: %.2f× the memory of %s.", plain, plain/against.bytes, against.name))
	}
	s.add(report.Row{
		ID: "P8", Work: work, Against: "bare ids and payloads", Ours: fmt.Sprintf("%.0f B", ours),
		Theirs: fmt.Sprintf("%.0f B", plain), Value: ours / plain,
		Note: s.note("Only a sorted set of the IDs and a hash of the payloads, in the same number of shards. The row has no target: it shows the memory of Redis' own structures."),
	}, "")
	return s.draw("memory.svg", "Memory for a pending job with a payload of 200 bytes", func(path, title string) error {
		return report.Bars(path, title, "bytes",
			[]report.Bar{{Label: "sluice", Value: ours}, {Label: "asynq", Value: theirs},
				{Label: "bare ZADD", Value: bare}})
	})
}
