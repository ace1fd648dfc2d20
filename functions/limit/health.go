package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// Statuses of a row. Only unsafe and down make the whole a 503.
const (
	statusOK      = "ok"
	statusWarn    = "warn"
	statusUnsafe  = "unsafe"
	statusDown    = "down"
	statusUnknown = "unknown"
)

const (
	healthTimeout = time.Second
	maxSkew       = 500 * time.Millisecond
	// heartbeatLate is when the dispatcher, which beats each second, counts as missing.
	heartbeatLate = 2 * time.Minute
	memoryWarn    = 0.8
)

// row is one line of the doctor's report.
type row struct {
	Name      string  `json:"name"`
	Status    string  `json:"status"`
	LatencyMS float64 `json:"latency_ms"`
	Detail    string  `json:"detail,omitempty"`
}

// doctor looks at what the deployment depends on.
type doctor struct {
	conn  *redisconn.Conn
	store *dynamopolicy.Store
}

func newDoctor(conn *redisconn.Conn, store *dynamopolicy.Store) *doctor {
	return &doctor{conn: conn, store: store}
}

func (a *api) health(w http.ResponseWriter, r *http.Request) error {
	if _, err := httpapi.Query(r); err != nil {
		return err
	}
	rows := a.doctor.examine(r.Context())
	overall, status := statusOK, http.StatusOK
	for _, row := range rows {
		switch row.Status {
		case statusDown, statusUnsafe:
			overall, status = "unhealthy", http.StatusServiceUnavailable
		case statusWarn:
			if overall == statusOK {
				overall = statusWarn
			}
		}
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	return httpapi.Write(w, status, map[string]any{"status": overall, "checks": rows})
}

// examine asks everything at once, and takes no longer than healthTimeout.
func (d *doctor) examine(ctx context.Context) []row {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	examinations := []func(context.Context) row{d.redis, d.eviction, d.memory, d.skew, d.cluster, d.heartbeat,
		d.dynamodb}
	rows := make([]row, len(examinations))
	var wait sync.WaitGroup
	for i, examine := range examinations {
		wait.Go(func() {
			started := time.Now()
			rows[i] = examine(ctx)
			rows[i].LatencyMS = instant.FloatMilliseconds(time.Since(started))
		})
	}
	wait.Wait()
	return rows
}

func (d *doctor) redis(ctx context.Context) row {
	if err := d.conn.Client().Ping(ctx).Err(); err != nil {
		return row{Name: "redis", Status: statusDown, Detail: "does not answer"}
	}
	return row{Name: "redis", Status: statusOK}
}

// eviction warns of every policy except noeviction, because Redis may then drop a lock or a job. It
// reads INFO, which ElastiCache permits, and not CONFIG, which it forbids.
func (d *doctor) eviction(ctx context.Context) row {
	r := row{Name: "redis_eviction_policy", Status: statusUnknown}
	nodes, err := d.conn.Info(ctx)
	if err != nil {
		return r
	}
	for _, node := range nodes {
		switch node.EvictionPolicy {
		case "":
		case "noeviction":
			r.Status, r.Detail = statusOK, node.EvictionPolicy
		default:
			r.Status = statusUnsafe
			r.Detail = node.EvictionPolicy + ": Redis may evict jobs and locks; set maxmemory-policy noeviction"
			return r
		}
	}
	return r
}

// memory reports the memory of the fullest master.
func (d *doctor) memory(ctx context.Context) row {
	r := row{Name: "redis_memory", Status: statusUnknown}
	nodes, err := d.conn.Info(ctx)
	if err != nil {
		return r
	}
	fullest := -1.0
	for _, node := range nodes {
		share := node.MemoryShare()
		if node.UsedMemory == 0 || share <= fullest { // 0: the server does not report its memory
			continue
		}
		fullest, r.Status, r.Detail = share, statusOK, fmt.Sprintf("%.0f%% of maxmemory used", 100*share)
		if node.MaxMemory == 0 {
			r.Detail = fmt.Sprintf("%d MiB used, no maxmemory", node.UsedMemory>>20)
		}
	}
	if fullest > memoryWarn {
		r.Status = statusWarn
	}
	return r
}

// skew compares Redis' clock with this function's, at the middle of the call.
func (d *doctor) skew(ctx context.Context) row {
	before := time.Now()
	there, err := d.conn.Client().Time(ctx).Result()
	if err != nil {
		return row{Name: "clock_skew", Status: statusUnknown}
	}
	return skewed(there.Sub(before.Add(time.Since(before) / 2)))
}

func skewed(by time.Duration) row {
	r := row{Name: "clock_skew", Status: statusOK, Detail: fmt.Sprintf("%d ms", by.Milliseconds())}
	if by.Abs() > maxSkew {
		r.Status = statusWarn
	}
	return r
}

func (d *doctor) cluster(ctx context.Context) row {
	r := row{Name: "redis_cluster", Status: statusOK, Detail: "not a cluster"}
	cluster, is := d.conn.Client().(*redis.ClusterClient)
	if !is {
		return r
	}
	info, err := cluster.ClusterInfo(ctx).Result()
	switch {
	case err != nil:
		r.Status, r.Detail = statusDown, "does not answer"
	case !strings.Contains(info, "cluster_state:ok"), !strings.Contains(info, "cluster_slots_ok:16384"):
		r.Status, r.Detail = statusDown, "not every slot is covered"
	default:
		r.Detail = "every slot is covered"
	}
	return r
}

func (d *doctor) heartbeat(ctx context.Context) row {
	r := row{Name: "dispatcher", Status: statusUnknown, Detail: "no heartbeat yet"}
	at, err := d.conn.Client().Get(ctx, delayqueue.HeartbeatKey).Int64()
	if err != nil {
		return r
	}
	age := time.Since(time.UnixMilli(at))
	r.Status, r.Detail = statusOK, fmt.Sprintf("worked %d ms ago", max(0, age.Milliseconds()))
	if age > heartbeatLate {
		r.Status = statusWarn
	}
	return r
}

func (d *doctor) dynamodb(ctx context.Context) row {
	if err := d.store.Ping(ctx); err != nil {
		return row{Name: "dynamodb", Status: statusDown, Detail: "the policy table does not answer"}
	}
	return row{Name: "dynamodb", Status: statusOK}
}
