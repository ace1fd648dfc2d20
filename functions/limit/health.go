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

// Statuses of a check. A check with the status "unsafe" or "down" makes the report unhealthy, with
// the HTTP status 503.
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
	// maxHeartbeatAge is the age of the dispatcher's heartbeat above which the check warns. The
	// dispatcher writes a heartbeat every second.
	maxHeartbeatAge = 2 * time.Minute
	// maxMemoryShare is the share of maxmemory in use above which the check warns.
	maxMemoryShare = 0.8
)

// healthResult is the result of one check in the health report.
type healthResult struct {
	Name      string  `json:"name"`
	Status    string  `json:"status"`
	LatencyMS float64 `json:"latency_ms"`
	Detail    string  `json:"detail,omitempty"`
}

// healthChecker checks the dependencies of a deployment.
type healthChecker struct {
	conn  *redisconn.Conn
	store *dynamopolicy.Store
}

func newHealthChecker(conn *redisconn.Conn, store *dynamopolicy.Store) *healthChecker {
	return &healthChecker{conn: conn, store: store}
}

func (a *api) health(w http.ResponseWriter, r *http.Request) error {
	if _, err := httpapi.Query(r); err != nil {
		return err
	}

	results := a.checker.checkAll(r.Context())
	overall, status := statusOK, http.StatusOK
	for _, result := range results {
		switch result.Status {
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

	return httpapi.Write(w, status, map[string]any{"status": overall, "checks": results})
}

// checkAll runs all checks concurrently. Checks that exceed healthTimeout fail.
func (c *healthChecker) checkAll(ctx context.Context) []healthResult {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()

	checks := []func(context.Context) healthResult{
		c.redis, c.eviction, c.memory, c.clockSkew, c.cluster, c.dispatcher, c.dynamodb,
	}
	results := make([]healthResult, len(checks))
	var wait sync.WaitGroup
	for i, check := range checks {
		wait.Go(func() {
			began := time.Now()
			results[i] = check(ctx)
			results[i].LatencyMS = instant.FloatMilliseconds(time.Since(began))
		})
	}
	wait.Wait()

	return results
}

func (c *healthChecker) redis(ctx context.Context) healthResult {
	if err := c.conn.Client().Ping(ctx).Err(); err != nil {
		return healthResult{Name: "redis", Status: statusDown, Detail: "does not answer"}
	}
	return healthResult{Name: "redis", Status: statusOK}
}

// eviction reports every eviction policy except noeviction as unsafe, because Redis may then evict
// locks and jobs. It reads INFO, because ElastiCache forbids CONFIG.
func (c *healthChecker) eviction(ctx context.Context) healthResult {
	r := healthResult{Name: "redis_eviction_policy", Status: statusUnknown}
	nodes, err := c.conn.Info(ctx)
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

// memory reports the memory use of the master that uses the largest share of its maxmemory.
func (c *healthChecker) memory(ctx context.Context) healthResult {
	r := healthResult{Name: "redis_memory", Status: statusUnknown}
	nodes, err := c.conn.Info(ctx)
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
	if fullest > maxMemoryShare {
		r.Status = statusWarn
	}
	return r
}

// clockSkew compares the clock of Redis with the function's clock halfway through the call.
func (c *healthChecker) clockSkew(ctx context.Context) healthResult {
	before := time.Now()
	serverTime, err := c.conn.Client().Time(ctx).Result()
	if err != nil {
		return healthResult{Name: "clock_skew", Status: statusUnknown}
	}
	return skewResult(serverTime.Sub(before.Add(time.Since(before) / 2)))
}

func skewResult(by time.Duration) healthResult {
	r := healthResult{Name: "clock_skew", Status: statusOK, Detail: fmt.Sprintf("%d ms", by.Milliseconds())}
	if by.Abs() > maxSkew {
		r.Status = statusWarn
	}
	return r
}

func (c *healthChecker) cluster(ctx context.Context) healthResult {
	r := healthResult{Name: "redis_cluster", Status: statusOK, Detail: "not a cluster"}
	cluster, isCluster := c.conn.Client().(*redis.ClusterClient)
	if !isCluster {
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

func (c *healthChecker) dispatcher(ctx context.Context) healthResult {
	r := healthResult{Name: "dispatcher", Status: statusUnknown, Detail: "no heartbeat has been written"}
	at, err := c.conn.Client().Get(ctx, delayqueue.HeartbeatKey).Int64()
	if err != nil {
		return r
	}
	age := time.Since(time.UnixMilli(at))
	r.Status, r.Detail = statusOK, fmt.Sprintf("last heartbeat %d ms ago", max(0, age.Milliseconds()))
	if age > maxHeartbeatAge {
		r.Status = statusWarn
	}
	return r
}

func (c *healthChecker) dynamodb(ctx context.Context) healthResult {
	if err := c.store.Ping(ctx); err != nil {
		return healthResult{Name: "dynamodb", Status: statusDown, Detail: "the policy table does not answer"}
	}
	return healthResult{Name: "dynamodb", Status: statusOK}
}
