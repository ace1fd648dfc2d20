package redisserver

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Mini is an embedded miniredis whose clock runs, for machines without redis-server. Unlike Redis,
// its Lua prints large numbers in full, it never replies CROSSSLOT or BUSY, and it loses its data
// when it is restarted.
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

// run moves the clock. Otherwise miniredis never expires a key.
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
