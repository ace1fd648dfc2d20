package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// BenchmarkCheck measures checks and, as the baseline, a script that returns a constant, with 1
// caller and with 64. Compare only results of the same run. bench/ measures other limiters.
func BenchmarkCheck(b *testing.B) {
	r := redistest.Single(b)
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}, PoolSize: 64})
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	l := New(b.Context(), conn)
	constant := redis.NewScript("return 1")
	check := func(algorithm policy.Algorithm, rules int, limit int64) func(context.Context, int) error {
		c := newCheck("", 1)
		for i := range rules {
			c.Policy.Rules = append(c.Policy.Rules, named("r"+strconv.Itoa(i), newRule(algorithm, limit, time.Second)))
		}
		return func(ctx context.Context, n int) error {
			mine := c
			mine.Key = fmt.Sprintf("%s-%d-%d", algorithm, rules, n%16)
			_, err := l.Check(ctx, mine)
			return err
		}
	}
	for _, work := range []struct {
		name string
		do   func(context.Context, int) error
	}{
		{"a constant", func(ctx context.Context, n int) error {
			return constant.Run(ctx, conn.Client(), []string{"floor-" + strconv.Itoa(n%16)}, 1, 2, 3, 4).Err()
		}},
		{"a bucket", check(policy.GCRA, 1, 1_000_000)},
		{"three buckets", check(policy.GCRA, 3, 1_000_000)},
		{"a fixed window", check(policy.FixedWindow, 1, 1_000_000)},
		{"a sliding counter", check(policy.SlidingWindowCounter, 1, 1_000_000)},
		{"an exact window", check(policy.SlidingWindow, 1, 1000)},
		{"a denied key", func(ctx context.Context, _ int) error {
			_, err := l.Check(ctx, cached(newCheck("denied", 1, newRule(policy.GCRA, 1, hour))))
			return err
		}},
	} {
		b.Run(work.name+", 1 caller", func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				require.NoError(b, work.do(b.Context(), n))
			}
		})
		b.Run(work.name+", 64 callers", func(b *testing.B) {
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					if err := work.do(b.Context(), n); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
