package dispatch

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// gaugeEvery is the time between two emissions of the gauges.
const gaugeEvery = time.Minute

// watchGauges emits the gauges at the start and then every minute, while Redis is available.
func (r *run) watchGauges(ctx context.Context) {
	for r.gate.wait(ctx) {
		r.emitQueues(ctx)
		r.emitRedis(ctx)
		if !sleep(ctx, gaugeEvery) {
			return
		}
	}
}

func (r *run) emitQueues(ctx context.Context) {
	for queue := range r.cfg.Queues {
		stats, err := r.jobs.Stats(ctx, queue)
		if err != nil {
			return // Redis is unavailable: the missing heartbeat reports it
		}
		out := []telemetry.Metric{
			telemetry.One("depth", telemetry.Count, float64(stats.Scheduled+stats.Due)),
			telemetry.One("oldest_due", telemetry.Milliseconds, float64(stats.OldestDue.Milliseconds())),
			telemetry.One("dead", telemetry.Count, float64(stats.Dead)),
		}
		if stats.Outbox != nil {
			out = append(out, telemetry.One("outbox", telemetry.Count, float64(*stats.Outbox)))
		}
		r.metrics.Emit(map[string]string{"queue": queue}, out...)
	}
}

func (r *run) emitRedis(ctx context.Context) {
	info, err := r.queues.RedisInfo(ctx)
	if err != nil {
		return
	}
	r.metrics.Emit(nil,
		telemetry.One("used_memory", telemetry.Bytes, float64(info.UsedMemory)),
		telemetry.One("maxmemory", telemetry.Bytes, float64(info.MaxMemory)),
		telemetry.One("connected_clients", telemetry.Count, float64(info.ConnectedClients)),
		telemetry.One("blocked_clients", telemetry.Count, float64(info.BlockedClients)),
		telemetry.One("evicted_keys", telemetry.Count, float64(info.EvictedKeys)),
		telemetry.One("instantaneous_ops_per_sec", telemetry.Count, float64(info.OpsPerSecond)))
}
