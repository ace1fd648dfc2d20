package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/localstack/faultproxy"
)

// lease is the time after which the claims of a killed dispatcher expire.
const lease = 30 * time.Second

func TestJobs(t *testing.T) {
	// A dispatcher that is killed at any point loses no job, sends no job early, and duplicates
	// only jobs that it sent just before the kill.
	t.Run("survive a dispatcher that is killed repeatedly", func(t *testing.T) {
		jobs, kills := scale("SLUICE_CHAOS_JOBS", 2000), scale("SLUICE_CHAOS_KILLS", 5)
		l := open(t, "kill")
		over := max(8*time.Second, time.Duration(kills)*2*time.Second)
		l.push(t, 0, jobs, over)
		random := rand.New(rand.NewPCG(seed, 1))
		for range kills {
			<-time.After(time.Duration(float64(over) / float64(kills) * (0.5 + random.Float64()/2)))
			l.kill()
		}
		l.check(t, over+4*lease)
	})

	// The proxy makes complete batches and single entries fail, throttles, and drops responses
	// after SQS accepted the messages.
	t.Run("survive every failure of SQS", func(t *testing.T) {
		l := open(t, "sqs")
		proxy.Set(faultproxy.Faults{Error: 0.1, Throttled: 0.1, Partial: 0.2, Lost: 0.1})
		l.push(t, 0, scale("SLUICE_CHAOS_JOBS", 2000)/2, 5*time.Second)
		<-time.After(6 * time.Second)
		proxy.Set(faultproxy.Faults{})
		l.check(t, 3*time.Minute)
		for fault, n := range proxy.Counts() {
			require.Positive(t, n, fault)
		}
	})

	// Redis is killed under load and restarted with its append-only file. No acknowledged job is
	// lost.
	t.Run("survive a Redis that is killed and restarted", func(t *testing.T) {
		l := open(t, "redis")
		l.push(t, 0, scale("SLUICE_CHAOS_JOBS", 2000)/4, 8*time.Second)
		for n := range 3 {
			<-time.After(time.Second)
			require.NoError(t, system.StopRedis(context.Background()))
			l.push(t, 10_000+100*n, 50, time.Second) // accepted while Redis is unavailable
			require.NoError(t, system.StartRedis(context.Background()))
		}
		l.check(t, 3*time.Minute)
	})

	// Redis is unavailable under load. Every enqueue is acknowledged, the outbox delivers the due
	// jobs, and each job arrives once.
	t.Run("are accepted while Redis is unavailable, and each arrives once", func(t *testing.T) {
		outage := time.Duration(scale("SLUICE_CHAOS_OUTAGE_SECONDS", 4)) * time.Second
		l := open(t, "outage")
		l.push(t, 0, 200, outage+3*time.Second)
		<-time.After(time.Second) // some jobs are sent before the outage
		require.NoError(t, system.StopRedis(context.Background()))
		stopped := time.Now()
		for n := 0; time.Since(stopped) < outage; n++ {
			began := time.Now()
			l.push(t, 1000+n*20, 20, 2*time.Second)
			require.Less(t, time.Since(began), 5*time.Second)
			<-time.After(200 * time.Millisecond)
		}
		require.NoError(t, system.StartRedis(context.Background()))
		l.check(t, 3*time.Minute)
	})
}
