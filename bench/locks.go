package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/sluicehq/sluice/bench/measure"
	"github.com/sluicehq/sluice/bench/report"
	"github.com/sluicehq/sluice/shared/lock"
)

const ttl = 10 * time.Second

// bareRelease is the compare-and-delete of the usual Redis lock.
const bareRelease = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

func lockThroughput(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	sluice := lock.NewRedis(db.conn)
	defer func() { _ = sluice.Close() }()
	floor, own := redis.NewScript(bareRelease), db.conn.Client()
	acquire := bareScript(`'TIME'`, `'GET', KEYS[1]`, `'SET', KEYS[1], ARGV[1], 'PX', ARGV[2]`)
	release := bareScript(`'GET', KEYS[1]`, `'TIME'`, `'SETRANGE', KEYS[1], '1', 'F'`)
	record := strings.Repeat("x", 150) // the length of Sluice's lock state
	bsm := redislock.New(db.peer)
	rs := redsync.New(goredis.NewPool(db.peer))
	contenders := []measure.Contender{
		{Name: "sluice", Op: func(ctx context.Context, w, _ int) error {
			lease, err := sluice.Acquire(ctx, lock.Request{Name: fmt.Sprintf("w%d", w), TTL: ttl})
			if err != nil {
				return err
			}
			_, err = sluice.Release(ctx, lease.Key, lease.Token)
			return err
		}},
		{Name: "floor", Op: func(ctx context.Context, w, n int) error {
			key, token := fmt.Sprintf("floor:w%d", w), fmt.Sprintf("token-%d-%d", w, n)
			if err := own.SetNX(ctx, key, token, ttl).Err(); err != nil {
				return err
			}
			return floor.Run(ctx, own, []string{key}, token).Err()
		}},
		{Name: bareCommands, Op: func(ctx context.Context, w, _ int) error {
			keys := []string{fmt.Sprintf("bare:w%d", w)}
			if err := acquire.Run(ctx, own, keys, record, "70000").Err(); err != nil {
				return err
			}
			return release.Run(ctx, own, keys, "60000").Err()
		}},
		{Name: "redislock", Op: func(ctx context.Context, w, _ int) error {
			l, err := bsm.Obtain(ctx, fmt.Sprintf("redislock:w%d", w), ttl, nil)
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}},
		{Name: "redsync", Op: func(ctx context.Context, w, _ int) error {
			m := rs.NewMutex(fmt.Sprintf("redsync:w%d", w), redsync.WithExpiry(ttl))
			if err := m.LockContext(ctx); err != nil {
				return err
			}
			_, err := m.UnlockContext(ctx)
			return err
		}},
	}
	fences := s.note("The peer's lock has no fencing token, no owner, no waiters and no idempotent retry, and reads no clock. The floor is only SET NX PX and a compare-and-delete, from Sluice's own client.")
	var bars []report.Bar
	for _, workers := range []int{1, 64} {
		samples, err := measure.Throughput(ctx, s.plan, workers, contenders)
		if err != nil {
			return err
		}
		s.ratios("P1", fmt.Sprintf("lock + release, %d goroutines", workers), samples,
			versus{"redislock", 1, fences}, versus{"redsync", 1.2, fences}, versus{"floor", 0.85, fences})
		for _, c := range contenders {
			bars = append(bars, report.Bar{Label: fmt.Sprintf("%s %d", c.Name, workers), Value: samples.Median(c.Name)})
		}
	}
	return s.draw("locks.svg", "Lock + release, 1 and 64 goroutines", func(path, title string) error {
		return report.Bars(path, title, "pairs/s", bars)
	})
}

// ratio adds a row that compares Sluice's samples with a peer's.
func (s *suite) ratio(id, work string, samples measure.Samples, against string, atLeast float64, note int, why string) {
	value, low, high := samples.Ratio("sluice", against)
	s.add(report.Row{
		ID: id, Work: work, Against: against, Ours: report.Rate(samples.Median("sluice")),
		Theirs: report.Rate(samples.Median(against)),
		Value:  value, Low: low, High: high, AtLeast: atLeast, Note: note,
	}, why)
}

// handOver is one way to wait for a lock.
type handOver struct {
	name string
	// acquire waits until it holds the lock, and returns a function that releases the lock.
	acquire func(ctx context.Context, key string) (release func() error, err error)
}

func lockHandOver(ctx context.Context, s *suite) error {
	db, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	sluice := lock.NewRedis(db.conn)
	defer func() { _ = sluice.Close() }()
	bsm, rs := redislock.New(db.peer), redsync.New(goredis.NewPool(db.peer))
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{db.server.Addr()}}, KeyMajority: 1,
		NoLoopTracking: true,
	})
	if err != nil {
		return fmt.Errorf("error starting rueidislock: %w", err)
	}
	defer locker.Close()
	ways := []handOver{
		{"sluice", func(ctx context.Context, key string) (func() error, error) {
			lease, err := sluice.Acquire(ctx, lock.Request{Name: key, TTL: ttl, Wait: ttl})
			return func() error { _, err := sluice.Release(ctx, lease.Key, lease.Token); return err }, err
		}},
		{"redislock", func(ctx context.Context, key string) (func() error, error) {
			l, err := bsm.Obtain(ctx, key, ttl,
				&redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
			return func() error { return l.Release(ctx) }, err
		}},
		{"redsync", func(ctx context.Context, key string) (func() error, error) {
			m := rs.NewMutex(key, redsync.WithExpiry(ttl))
			return func() error { _, err := m.UnlockContext(ctx); return err }, m.LockContext(ctx)
		}},
		{"rueidislock", func(ctx context.Context, key string) (func() error, error) {
			_, cancel, err := locker.WithContext(ctx, key)
			return func() error { cancel(); return nil }, err
		}},
	}
	took := make(map[string][]float64)
	names := make([]string, 0, len(ways))
	for _, way := range ways {
		names = append(names, way.name)
		if took[way.name], err = handOvers(ctx, way, s.size(30, 6)); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	ours := measure.Quantile(took["sluice"], 0.5)
	s.add(report.Row{ID: "P2", Work: "release → next holder, p50", Against: "a bound", Ours: ms(ours), Value: ours,
		Unit: "ms", AtMost: 2}, "")
	notes := map[string]int{
		"redislock": s.note("The peer polls with a linear backoff of 100 ms, as in its documentation."),
		"redsync":   s.note("The peer polls after random delays of 50 to 250 ms, its default."),
	}
	for _, peer := range []string{"redislock", "redsync"} {
		theirs := measure.Quantile(took[peer], 0.5)
		s.add(report.Row{ID: "P2", Work: "release → next holder, p50", Against: peer, Ours: ms(ours),
			Theirs: ms(theirs), Value: theirs / ours, AtLeast: 10, Note: notes[peer]}, "")
	}
	theirs := measure.Quantile(took["rueidislock"], 0.5)
	s.add(report.Row{
		ID: "P2", Work: "release → next holder, p50", Against: "rueidislock", Ours: ms(ours), Theirs: ms(theirs),
		Value: theirs / ours, AtLeast: 0.1,
		Note: s.note("Redis notifies this peer's waiters too. The bound is no performance target: it only detects a severe regression."),
	}, "")
	return s.draw("handover.svg", "From a release to the next holder", func(path, title string) error {
		return report.Distribution(path, title, names, took)
	})
}

// pairs is the number of hand-overs that run concurrently, so that the measurement takes an eighth
// of the time.
const pairs = 8

// handOvers measures the times from a release until the waiter holds the lock, in ms. The argument
// each is the number of hand-overs that each pair of a holder and a waiter makes.
func handOvers(ctx context.Context, way handOver, each int) ([]float64, error) {
	var (
		mu   sync.Mutex
		out  []float64
		errs = make([]error, pairs)
		wait sync.WaitGroup
	)
	for p := range pairs {
		wait.Go(func() {
			for n := range each {
				took, err := way.once(ctx, fmt.Sprintf("handover-%s-%d-%d", way.name, p, n))
				if err != nil {
					errs[p] = err
					return
				}
				mu.Lock()
				out = append(out, took.Seconds()*1000)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (h handOver) once(ctx context.Context, key string) (time.Duration, error) {
	release, err := h.acquire(ctx, key)
	if err != nil {
		return 0, err
	}
	type result struct {
		at  time.Time
		err error
	}
	next := make(chan result, 1)
	go func() {
		again, err := h.acquire(ctx, key)
		got := time.Now()
		if err == nil {
			err = again()
		}
		next <- result{got, err}
	}()
	// The delay is random, so that the release can be at any point of a peer's polling interval.
	time.Sleep(150*time.Millisecond + rand.N(250*time.Millisecond))
	released := time.Now()
	if err := release(); err != nil {
		return 0, err
	}
	r := <-next
	return r.at.Sub(released), r.err
}

func ms(v float64) string { return fmt.Sprintf("%.2f ms", v) }
