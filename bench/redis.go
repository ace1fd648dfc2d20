package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/localstack/redisserver"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// pool is the maximum number of Redis connections of each contender.
const pool = 64

// store is a redis-server that the benchmark starts, with two clients. The client conn is Sluice's
// own. The client peer is configured as the documentation of the peers recommends.
type store struct {
	server *redisserver.Server
	conn   *redisconn.Conn
	peer   *redis.Client
}

func openStore(ctx context.Context) (*store, error) {
	server, err := redisserver.Start(ctx, redisserver.Options{})
	if err != nil {
		return nil, err
	}
	conn, err := redisconn.Open(redisconn.Config{URLs: []string{server.URL()}, PoolSize: pool,
		CallTimeout: 30 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("error connecting: %w", err)
	}
	return &store{server: server, conn: conn,
		peer: redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: pool, MinIdleConns: pool})}, nil
}

func (s *store) close() {
	_ = s.conn.Close()
	_ = s.peer.Close()
	_ = s.server.Close()
}

// flush removes all keys.
func (s *store) flush(ctx context.Context) error { return s.peer.FlushAll(ctx).Err() }

// used returns the memory in use, in bytes.
func (s *store) used(ctx context.Context) (float64, error) {
	return s.info(ctx, "memory", "used_memory:")
}

// processor returns the processor time that Redis has spent, in seconds.
func (s *store) processor(ctx context.Context) (float64, error) {
	user, err := s.info(ctx, "cpu", "used_cpu_user:")
	if err != nil {
		return 0, err
	}
	system, err := s.info(ctx, "cpu", "used_cpu_sys:")
	return user + system, err
}

// info returns one number from the output of Redis' command INFO. It searches the output for each
// mark in order, always after the previous mark, and reads the number after the last mark.
func (s *store) info(ctx context.Context, section string, marks ...string) (float64, error) {
	text, err := s.peer.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("error reading INFO %s: %w", section, err)
	}
	var n float64
	for _, mark := range marks {
		text = after(text, mark)
	}
	if _, err := fmt.Sscanf(text, "%f", &n); err != nil {
		return 0, fmt.Errorf("error reading %v: %w", marks, err)
	}
	return n, nil
}

// redisMicros calls do, which makes n operations. It returns the processor time that Redis spends
// on one operation, in microseconds.
func redisMicros(ctx context.Context, db *store, n int, do func(context.Context) error) (float64, error) {
	before, err := db.processor(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(ctx); err != nil {
		return 0, err
	}
	after, err := db.processor(ctx)
	return (after - before) * 1e6 / float64(n), err
}
