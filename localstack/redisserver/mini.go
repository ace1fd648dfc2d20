package redisserver

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Mini is an embedded miniredis for machines without redis-server. It differs
// from Redis: Lua formats large numbers without an exponent, no reply is CROSSSLOT or BUSY, and a
// restart loses all data.
type Mini struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   chan struct{}
}

// StartMini starts a miniredis in this process.
func StartMini() (*Mini, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("error starting miniredis: %w", err)
	}
	m := &Mini{server: server, stop: make(chan struct{}), done: make(chan struct{})}
	go m.run()
	return m, nil
}

// run advances the clock of miniredis every 10 ms. Without it, keys never expire.
func (m *Mini) run() {
	defer close(m.done)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-m.stop:
			return
		case now := <-ticker.C:
			m.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// Addr returns host:port.
func (m *Mini) Addr() string { return m.server.Addr() }

// URL returns the redis:// URL.
func (m *Mini) URL() string { return "redis://" + m.server.Addr() }

// Close stops the miniredis.
func (m *Mini) Close() error {
	close(m.stop)
	<-m.done
	m.server.Close()
	return nil
}
