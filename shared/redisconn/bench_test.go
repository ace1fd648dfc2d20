package redisconn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// BenchmarkRun measures a script call on one warm connection.
func BenchmarkRun(b *testing.B) {
	r := redistest.Single(b)
	c, err := redisconn.Open(redisconn.Config{URLs: []string{r.URL}})
	require.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	script, keys := redis.NewScript("return 1"), []string{"{k}"}

	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(b.Context(), script, keys); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRunWhileOpen measures a call that fails because the circuit breaker is open.
func BenchmarkRunWhileOpen(b *testing.B) {
	redisconn.SilenceDriver()
	c, err := redisconn.Open(redisconn.Config{URLs: []string{"redis://127.0.0.1:1"}}) // nothing listens there
	require.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	script, keys := redis.NewScript("return 1"), []string{"{k}"}
	for !c.BreakerOpen() {
		_, _ = c.Run(b.Context(), script, keys)
	}

	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Run(b.Context(), script, keys)
	}
}
