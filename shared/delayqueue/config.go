package delayqueue

import (
	"fmt"
	"time"
)

// MaxShards is the maximum of [Config.Shards].
const MaxShards = 256

// Config configures Queues. All processes that use the same Redis should use the same Config.
type Config struct {
	// Shards is the number of shards of each queue: 1 to MaxShards. Redis Cluster distributes the
	// shards of a queue over its nodes. The number may be changed at any time. Defaults to 4.
	Shards int
	// DedupWindow is the time for which a finished job is kept: it can be read, and enqueuing its
	// ID again changes nothing. At least 1 ms. Defaults to 1 h.
	DedupWindow time.Duration
	// DeadRetention is the time for which a dead job is kept and can be redriven. At least 1 ms.
	// Defaults to 14 days.
	DeadRetention time.Duration
	// MaxLapses is the number of consecutive lapsed leases after which a job becomes dead. The
	// limit stops a job that crashes every dispatcher. At least 1. Defaults to 100.
	MaxLapses int
}

func (c Config) withDefaults() Config {
	if c.Shards == 0 {
		c.Shards = 4
	}
	if c.DedupWindow == 0 {
		c.DedupWindow = time.Hour
	}
	if c.DeadRetention == 0 {
		c.DeadRetention = 14 * 24 * time.Hour
	}
	if c.MaxLapses == 0 {
		c.MaxLapses = 100
	}
	return c
}

// validate checks the result of withDefaults.
func (c Config) validate() error {
	switch {
	case c.Shards < 1 || c.Shards > MaxShards:
		return fmt.Errorf("error configuring the queues: Shards is %d and must be 1 to %d", c.Shards, MaxShards)
	case c.DedupWindow < time.Millisecond:
		return fmt.Errorf("error configuring the queues: DedupWindow is %s and must be at least 1ms", c.DedupWindow)
	case c.DeadRetention < time.Millisecond:
		return fmt.Errorf("error configuring the queues: DeadRetention is %s and must be at least 1ms", c.DeadRetention)
	case c.MaxLapses < 1:
		return fmt.Errorf("error configuring the queues: MaxLapses is %d and must be at least 1", c.MaxLapses)
	}
	return nil
}
