package delayqueue

import (
	"fmt"
	"time"
)

// MaxShards is the highest [Config.Shards].
const MaxShards = 256

// Config configures Queues. Every process that uses the same Redis should have the same.
type Config struct {
	// Shards is how many shards each queue has: 1 to MaxShards. The shards of a queue spread over
	// the nodes of a cluster. It may be changed at any time. Defaults to 4.
	Shards int
	// DedupWindow is how long a finished job can still be read, and its ID refers to it. Defaults
	// to 1 h.
	DedupWindow time.Duration
	// DeadRetention is how long a dead job can be redriven before it is removed. Defaults to 14
	// days.
	DeadRetention time.Duration
	// MaxLapses is how many leases of a job may lapse in a row before it is dead, so that a job
	// that crashes every dispatcher is not claimed for ever. Defaults to 100.
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

// validate checks a Config that has its defaults.
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
